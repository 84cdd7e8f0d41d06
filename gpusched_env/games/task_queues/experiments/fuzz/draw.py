"""Random cases of task queues: small machines and graphs, prices that let events coincide, queues of every size."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.games.task_queues.experiments.fuzz.case import TaskCase
from gpusched_env.games.task_queues.form import Form, Strategy, Worker
from gpusched_env.games.task_queues.hardware.links import TaskLink
from gpusched_env.games.task_queues.hardware.machine import TaskMachine
from gpusched_env.games.task_queues.partition import PARTITIONS
from gpusched_env.games.task_queues.problem import Application
from gpusched_env.hardware.specs import load_gpu

SMS = {1: 5, 2: 3, 3: 2, 7: 1}
APPLICATIONS: dict[Application, float] = {"bfs": 4, "pagerank": 2, "colouring": 3}
STRATEGIES: dict[Strategy, float] = {"persistent": 4, "discrete": 3, "bulk-synchronous": 2}
WORKERS: dict[Worker, float] = {"block": 1, "warp": 1}
CHANGES = {0: 5, 1: 3, 2: 2, 4: 1}
GPUS = {1: 4, 2: 3, 3: 1, 4: 2}
POLLS = {200: 6, 40: 2, 10: 1, 3: 1, 1: 0.5}


def draw_tasks(seed: int, episode: int) -> TaskCase:
    """The case of an episode: the same for the same two numbers."""
    dice = Dice(seed, episode, 2)
    dice.tidy = dice.chance(0.6)
    vertices = dice.log_integer(1, 160)
    application = dice.weighted(APPLICATIONS)
    machine = _machine(dice)
    gpus = min(vertices, dice.weighted(GPUS)) if application != "colouring" else 1
    changes = dice.weighted(CHANGES)
    return TaskCase(
        machine=machine,
        gpus=gpus,
        link=_link(dice),
        partition=dice.pick(PARTITIONS),
        vertices=vertices,
        edges=_edges(dice, vertices),
        application=application,
        source=dice.integer(0, vertices - 1),
        epsilon=dice.pick((0.01, 0.05, 0.2)),
        capacity=dice.pick((vertices, 2 * vertices)) if dice.chance(0.1) else 300 * vertices + 9000,
        polls=dice.weighted(POLLS),
        relaunch=dice.chance(0.4),
        forms=tuple(_form(dice, application) for _ in range(changes + 1)),
        stay_ps=tuple(int(dice.number(1e3, 1e6)) for _ in range(changes)),
        pause_ps=int(dice.number(1e4, 1e6)) if dice.chance(0.5) else 1 << 40,
    )


def _edges(dice: Dice, vertices: int) -> tuple[tuple[int, int], ...]:
    """A path, a star or a random graph, or several of them."""
    edges: list[tuple[int, int]] = []
    for _ in range(dice.integer(1, 2)):
        shape = dice.pick(("path", "star", "random", "random"))
        if shape == "path":
            edges += [(i, i + 1) for i in range(vertices - 1)]
        elif shape == "star":
            middle = dice.integer(0, vertices - 1)
            edges += [(middle, i) for i in range(vertices)]
        else:
            count = dice.log_integer(1, 4 * vertices)
            edges += [(dice.integer(0, vertices - 1), dice.integer(0, vertices - 1)) for _ in range(count)]
    return tuple(edges)


def _machine(dice: Dice) -> TaskMachine:
    def price() -> int:
        return max(1, round(dice.number(1e3, 1e5)))

    gpu = replace(
        load_gpu("v100-sxm"),
        name="fuzz-gpu",
        sms=dice.weighted(SMS),
        dram_bytes_per_us=1e12 if dice.chance(0.5) else dice.number(10.0, 1e6),
        l2_bytes=dice.log_integer(1, 1000),
    )
    return TaskMachine(
        gpu=gpu,
        persistent_blocks_per_sm=dice.integer(1, 3),
        persistent_warps_per_sm=dice.integer(1, 6),
        discrete_warps_per_sm=dice.integer(1, 20),
        discrete_block_warps=dice.integer(1, 8),
        atomic_ps=dice.pick((1, 1000, 5000)),
        **{name: price() for name in ("grab_ps", "load_ps", "vertex_ps", "slot_ps", "push_ps", "warp_push_ps")},
        **{name: price() for name in ("write_ps", "poll_ps", "warp_poll_ps", "refresh_ps", "host_launch_ps")},
        **{name: price() for name in ("launch_ps", "copy_ps", "sync_ps")},
    )


def _link(dice: Dice) -> TaskLink:
    def price() -> int:
        return round(dice.number(1e3, 1e5))

    return TaskLink(
        name="fuzz-link",
        latency_ps=dice.pick((0, price(), 30 * price())),
        bytes_per_us=dice.number(10.0, 1e6),
        operation_bytes=dice.integer(1, 64),
        sort_ps=dice.pick((0, price())),
        batch=dice.pick((1, 2, 5, 16, 200)) if dice.chance(0.5) else None,
        wait=dice.integer(1, 6),
        look_ps=max(1, price()),
    )


def _form(dice: Dice, application: Application) -> Form:
    strategy = dice.weighted(STRATEGIES)
    split = strategy == "discrete" and application == "bfs" and dice.chance(0.4)
    return Form(
        strategy=strategy,
        worker=dice.weighted(WORKERS),
        fetch=dice.pick((1, 2, 5, 32, 256)),
        threshold=dice.integer(1, 6) if split else 0,
        delta=dice.integer(1, 3),
        grid=dice.integer(1, 30) if strategy == "persistent" and dice.chance(0.1) else None,
    )
