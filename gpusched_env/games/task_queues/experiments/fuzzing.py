"""Fuzzing of task queues: random cases as plain data, each on two devices that change forms at the same times, and all
that they show is compared.

A case on which they differ is made simpler.

Cases have small machines and graphs, prices that let events coincide, and queues of every size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from gpusched_env.errors import DeadlockError, InputError
from gpusched_env.experiments.fuzz.compare import DuelComparison, outcome_of
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.run import Fuzzing
from gpusched_env.experiments.fuzz.stored import Counterexample, GameCase, TreeShrinker
from gpusched_env.games.task_queues.device import Event, TaskDevice
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.hardware.links import NVLINK, TaskLink
from gpusched_env.games.task_queues.hardware.machine import TaskMachine
from gpusched_env.games.task_queues.problem import (
    PARTITIONS,
    Application,
    Form,
    Partition,
    Strategy,
    TaskProblem,
    Worker,
)
from gpusched_env.games.task_queues.session import fault_of
from gpusched_env.hardware.clock import PS_PER_US
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.graphs import simple_graph

FORMAT: Final = "gpusched-fuzz-tasks/1"
Vertices = Annotated[int, Meta(ge=1, le=4096)]


class TaskCase(GameCase, frozen=True, kw_only=True):
    """One run of an application."""

    machine: TaskMachine
    gpus: int = 1
    link: TaskLink = NVLINK
    partition: Partition = "vertices"
    vertices: Vertices
    edges: tuple[tuple[int, int], ...] = ()
    """Undirected edges of the graph."""
    application: Application = "bfs"
    source: int = 0
    epsilon: float = 0.01
    capacity: int | None = None
    polls: int = 10
    relaunch: bool = False
    forms: Annotated[tuple[Form, ...], Meta(min_length=1)]
    """Forms, one after another."""
    stay_ps: tuple[int, ...] = ()
    """How long after the start, or after the change before it, each further one is asked for."""
    pause_ps: Annotated[int, Meta(ge=1)] = 1 << 40
    """Time between looks at the devices."""

    def problem(self) -> TaskProblem:
        """The case's problem.

        Raises:
            InputError: it is not a valid one.
        """
        for end in (end for edge in self.edges for end in edge):
            if not 0 <= end < self.vertices:
                raise InputError(f"edges: {end} is no vertex, these are 0 to {self.vertices - 1}")
        ends, others = np.array(self.edges, np.int64).reshape(-1, 2).T
        return TaskProblem(
            graph=simple_graph(self.vertices, ends, others),
            application=self.application,
            machine=self.machine,
            gpus=self.gpus,
            link=self.link,
            partition=self.partition,
            source=self.source,
            epsilon=self.epsilon,
            capacity=self.capacity,
            polls=self.polls,
            relaunch=self.relaunch,
            log=1 << 14,
            name="fuzz",
        )


class TaskCounterexample(Counterexample, frozen=True, kw_only=True):
    """A stored case."""

    format: Literal["gpusched-fuzz-tasks/1"] = FORMAT
    case: TaskCase


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
        crowding=dice.pick((1.0, 1.5, 4.0)),
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


MakeTaskDevice = Callable[[], TaskDevice]
MOST_PAUSES = 400
"""Looks at a device before it runs on to its end."""


def play_tasks(case: TaskCase, device: MakeTaskDevice, against: MakeTaskDevice) -> Outcome:
    """Run ``case`` on a new ``device`` and on one that is trusted, and compare.

    Raises:
        InputError: the case is not a valid problem.
    """
    return outcome_of(_TaskDuel(case, device, against))


class _TaskDuel:
    """A case, the trusted device and the one under test."""

    def __init__(self, case: TaskCase, device: MakeTaskDevice, against: MakeTaskDevice) -> None:
        self.case, self.problem = case, case.problem()
        self.devices = (against(), device())
        self.comparison = DuelComparison()
        self._changed_in_flight = False
        forms = {part for form in case.forms for part in (form.strategy, f"workers: {form.worker}s")}
        self.outcome = Outcome(features={case.application, *forms})
        if any(form.threshold for form in case.forms):
            self.outcome.features.add("two queues")
        if case.relaunch:
            self.outcome.features.add("launched again if left early")
        if case.gpus > 1:
            self.outcome.features.update({f"{case.gpus} GPUs", "push" if case.link.batch is None else "aggregation"})

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the devices do."""
        first, *others = self.case.forms
        over = self._both("begin", lambda device: device.begin(self.problem, first))
        at_ps = 0
        for form, stay_ps in zip(others, self.case.stay_ps, strict=False):
            at_ps += stay_ps
            over = self._until(at_ps)
            if over:
                break
            self._changed_in_flight |= bool(self.devices[0].totals["flying"])
            self._both("change", lambda device, form=form: device.change(form))  # type: ignore[misc]
            self.comparison.step += 1
        if not over:
            over = self._until(at_ps + MOST_PAUSES * self.case.pause_ps)
        if not over:
            over = self._both("advance", lambda device: device.advance())
        self._look()
        if over is True:
            self.outcome.features.add("right results")
            for device in self.devices:
                self.comparison.equal("results", "what is wrong", "", fault_of(self.problem, device.data))
        self._count()

    def _until(self, end_ps: int) -> Any:
        """Go on in steps to a time; whether it is the end."""
        expected = self.devices[0]
        over: Any = False
        while not over and expected.time_ps < end_ps:
            at_ps = min(end_ps, expected.time_ps + self.case.pause_ps)
            over = self._both("advance", lambda device, at_ps=at_ps: device.advance(at_ps))  # type: ignore[misc]
            self._look()
        return over

    def _both(self, what: str, call: Callable[[TaskDevice], Any]) -> Any:
        """The same on both devices: the trusted one's answer; the error, if there is one."""
        answers = self.comparison.both(self.devices, what, call)
        if isinstance(answers, tuple):
            self.comparison.equal("answer", what, *map(repr, answers))
            return answers[0]
        if isinstance(answers, DeadlockError):
            words = {
                "link from": "overflow of a link",
                "overflows": "overflow",
                "cannot complete": "impossible vote",
                "too early": "early end",
            }
            self.outcome.features.update(name for word, name in words.items() if word in str(answers))
        return answers

    def _look(self) -> None:
        """Look at everything that both devices show."""
        expected, found = self.devices
        self.comparison.time_us = expected.time_ps / PS_PER_US
        self.comparison.equal("time", "time_ps", expected.time_ps, found.time_ps)
        for kind in ("totals", "queues", "log"):
            self.comparison.rows(kind, getattr(expected, kind), getattr(found, kind))
        for number, alloc in enumerate(expected.queues["alloc"].tolist()):
            items = [device.items[number, :alloc] for device in self.devices]
            self.comparison.close("items", f"items[{number}]", *items)
        for name in expected.data._fields:
            self.comparison.close("data", f"data.{name}", getattr(expected.data, name), getattr(found.data, name))

    def _count(self) -> None:
        device = self.devices[0]
        totals, events = device.totals, set(device.log["event"].tolist())
        self.outcome.counts.update({name: int(totals[name]) for name in ("tasks", "pushed", "kernels", "changes")})
        seen = device.log["event"]
        lagging = device.log[seen == Event.PUBLISH]["a"]
        happened = {
            "idle workers": Event.IDLE in events,
            "votes": Event.VOTE in events,
            "tasks put back": bool((device.log[seen == Event.CHANGE]["a"] > 0).any()),
            "another form": Event.CHANGE in events,
            "tasks sent": bool(totals["sent"]),
            "sent tasks that come too late": bool((device.log[seen == Event.LAND]["b"] == 0).any()),
            "whole batches": bool((device.log[seen == Event.BATCH]["b"] >= (self.case.link.batch or 0)).any()),
            "change while tasks are on the way": self._changed_in_flight,
            "late publishers": len(lagging) > len(set(lagging.tolist())),
        }
        self.outcome.features.update(name for name, there in happened.items() if there)


FORMS = r"forms/\d+/(grid|threshold|delta|worker|strategy)"
PRICES = r"machine/(?!gpu).*|link/.*"


class TaskShrinker(TreeShrinker[TaskCase]):
    """A greedy shrinker, as those of the other devices."""

    LISTS = ("edges", "forms", "stay_ps")
    OPTIONS = rf"gpus|link|link/batch|partition|pause_ps|capacity|source|polls|epsilon|relaunch|{FORMS}"
    NUMBERS = rf"gpus|vertices|source|polls|capacity|stay_ps/\d+|pause_ps|forms/\d+/(fetch|threshold|grid)|{PRICES}"


TASKS: Final = Fuzzing(make_task_device, draw_tasks, play_tasks, TaskShrinker, TaskCounterexample)
