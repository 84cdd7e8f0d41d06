"""Random cases: a problem, who plays it, and how."""

from __future__ import annotations

import statistics

import msgspec

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.data import recorded_names
from gpusched_env.experiments.fuzz.case import (
    Baseline,
    Case,
    EnvOptions,
    Player,
    RandomActions,
    RandomCommands,
    SnapshotPlan,
)
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.gpus import draw_gpu, modified_timing
from gpusched_env.experiments.fuzz.programs import kernels_of
from gpusched_env.experiments.fuzz.tenants import draw_tenants
from gpusched_env.experiments.fuzz.workloads import SOURCE, draw_workload, fits, waves
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.problem import load_workload
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.scenario import CommandName, Contexts, PreemptionName, Reward, Scenario
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.workload.workload import Workload

ENVIRONMENTS = 0.2
"""Share of cases that are played through the Gymnasium environment."""
MOST_COMMANDS = 3000
USUAL_BLOCKS = 20_000
"""Blocks of most episodes: a device goes block by block."""
MOST_WAVES = 10_000
"""Waves of an episode whose blocks are recorded (recorded waves are not jumped over)."""
OPTIONAL: tuple[CommandName, ...] = ("preempt", "partition", "reject")
MODES: tuple[PreemptionName, ...] = ("drain", "save", "reset", "save-part")
RECORDED_GPUS = ("h100-sxm", "h200-sxm", "a100-sxm")
"""Large enough for the recorded workloads."""


def draw_case(seed: int, episode: int) -> Case:
    """The case of one episode; it depends on nothing else."""
    dice = Dice(seed, episode)
    dice.tidy = dice.chance(0.25)
    recorded = dice.chance(0.03)
    name, gpu = _recorded_gpu(dice) if recorded else draw_gpu(dice)
    spec = gpu or load_gpu(name)
    workloads = _recorded_workloads(dice, spec) if recorded else _drawn_workloads(dice, spec)
    kernels = dice.weighted({dice.log_integer(10, 150): 4.0, dice.log_integer(100, 1000): 5.0, 1500: 0.1})
    if dice.chance(0.98):
        kernels = min(kernels, max(2, int(USUAL_BLOCKS / max(_blocks(w) for w in workloads.values()))))
    tenants, horizon_us = draw_tenants(dice, workloads, kernels)
    env = dice.chance(ENVIRONMENTS)
    player = _actions(dice) if env else _player(dice, horizon_us, kernels)
    priorities = tuple(-p for p in range(spec.priorities))
    scenario = Scenario(
        name="fuzz",
        summary=f"drawn by the fuzzer: seed {seed}, episode {episode}",
        gpu=name,
        tenants=tenants,
        horizon_us=horizon_us,
        decision_us=0.0 if dice.chance(0.6) else dice.number(0.1, 20.0),
        commands=("launch", *(command for command in OPTIONAL if dice.chance(0.5))),
        stream_priorities=dice.some(priorities),
        preemption=dice.some(MODES),
        contexts=_contexts(dice, player),
        lookahead=dice.weighted({1: 2, 2: 1, 3: 1, 4: 1, dice.integer(5, 16): 2}),
        streams=dice.weighted({0: 3, 1: 1, 2: 1, 3: 1, 4: 1}),
        launch_depth=1024 if dice.chance(0.5) else dice.log_integer(1, 16),
        variation=dice.chance(0.5),
        reward=_reward(dice),
    )
    total_waves = kernels * max(waves(w, spec) / _kernels(w) for w in workloads.values())
    own = {name: workload for name, workload in workloads.items() if workload.source == SOURCE}
    case = Case(
        scenario=scenario,
        gpu=gpu,
        workloads=own,
        spreads=_spreads(dice),
        seed=dice.seed(),
        player=player,
        env=_env(dice, len(tenants), horizon_us / kernels) if env else None,
        record=_detail(dice, total_waves),
        most_commands=MOST_COMMANDS,
        before=dice.log_integer(1, 60) if dice.chance(0.15) else 0,
        snapshot=SnapshotPlan(step=dice.log_integer(1, 100) - 1, fresh=dice.chance(0.5)) if dice.chance(0.15) else None,
    )
    return msgspec.structs.replace(case, scenario=msgspec.structs.replace(scenario, profiles=_profiles(dice)))


def _recorded_gpu(dice: Dice) -> tuple[str, GpuSpec | None]:
    name = dice.pick(RECORDED_GPUS)
    return name, modified_timing(dice, name) if dice.chance(0.5) else None


def _recorded_workloads(dice: Dice, gpu: GpuSpec) -> dict[str, Workload]:
    """One to three shipped workloads that fit on the GPU."""
    workloads = {}
    for name in dice.shuffled(recorded_names())[: dice.integer(1, 3)]:
        workload = load_workload(name)
        if fits(workload, gpu):
            workloads[name] = workload
    return workloads or {"toy_urgent": load_workload("toy_urgent")}


def _drawn_workloads(dice: Dice, gpu: GpuSpec) -> dict[str, Workload]:
    workloads = {}
    for i in range(dice.weighted({1: 3, 2: 4, 3: 2, 4: 1})):
        name = f"w{i}"
        workload = draw_workload(dice, name, gpu)
        if dice.chance(0.1):
            elsewhere = draw_workload(dice, name, load_gpu(dice.pick(("h100-sxm", "rtx-3090", "v100-sxm", "tx2"))))
            workload = elsewhere if fits(elsewhere, gpu) else workload
        workloads[name] = workload
    if gpu.name == "toy-4sm" and dice.chance(0.2):
        workloads["toy_batch"] = load_workload("toy_batch")
    return workloads


def _kernels(workload: Workload) -> float:
    """Kernels of a job, on average over variants."""
    return sum(1 for _ in kernels_of(workload)) / len(workload.variants)


def _blocks(workload: Workload) -> float:
    """Blocks of a kernel, on average over those launched."""
    return statistics.fmean(workload.kernels[row].blocks for row, _ in kernels_of(workload))


def _player(dice: Dice, horizon_us: float, kernels: int) -> Player:
    if dice.chance(0.25):
        return Baseline(name=dice.pick(scheduler_names()))
    return RandomCommands(
        seed=dice.seed(),
        launch=dice.number(1.0, 10.0),
        wait=dice.number(0.3, 3.0),
        preempt=dice.pick((0.0, 0.3, 1.0)),
        partition=dice.pick((0.0, 0.05, 0.3)),
        reject=dice.pick((0.0, 0.05, 0.3)),
        illegal=dice.pick((0.0, 0.05, 0.2)),
        confined=dice.pick((0.0, 0.2, 0.8)),
        urgent=dice.pick((0.0, 0.3, 0.8)),
        elsewhere=dice.pick((0.0, 0.2, 0.7)),
        bounded=dice.pick((0.1, 0.4, 0.9)),
        wait_us=max(0.1, horizon_us / kernels * dice.number(0.05, 3.0)),
    )


def _contexts(dice: Dice, player: Player) -> Contexts:
    wanted: Contexts | None = None
    if isinstance(player, Baseline):
        wanted = getattr(make_scheduler(player.name), "contexts", None)
    return wanted or ("per-tenant" if dice.chance(0.3) else "shared")


def _reward(dice: Dice) -> Reward:
    return Reward(**{name: 0.0 if dice.chance(0.4) else dice.number(0.1, 10.0) for name in Reward.__struct_fields__})


def _profiles(dice: Dice) -> ProfileError:
    if dice.chance(0.7):
        return ProfileError()
    return ProfileError(
        durations=dice.number(0.3, 3.0),
        gaps=dice.pick((0.0, 1.0, 2.0)),
        scatter=dice.number(1.0, 4.0),
        forget=dice.pick((0.0, 0.3, 1.0)),
        seed=dice.integer(0, 1000),
    )


def _spreads(dice: Dice) -> tuple[float, ...]:
    if dice.tidy or dice.chance(0.6):
        return ()
    return tuple(dice.pick((0.0, 0.0, dice.uniform(0.0, 0.3))) for _ in range(dice.integer(1, 3)))


def _actions(dice: Dice) -> RandomActions:
    return RandomActions(
        seed=dice.seed(),
        wait=dice.uniform(0.0, 0.6),
        launch=dice.pick((0.0, 0.3, 0.7, 0.95)),
        illegal=dice.pick((0.0, 0.05, 0.2)),
    )


def _env(dice: Dice, tenants: int, kernel_us: float) -> EnvOptions:
    return EnvOptions(
        slots=tenants + dice.integer(0, 2),
        running_slots=dice.integer(1, 12),
        wait_us=dice.number(5.0, 200.0) if dice.chance(0.5) else max(0.1, kernel_us * dice.number(0.05, 3.0)),
        views=dice.chance(0.3),
    )


def _detail(dice: Dice, waves_: float) -> Detail:
    if waves_ > MOST_WAVES:
        return dice.pick(("kernels", "kernels", "jobs"))
    return dice.weighted({"blocks": 5, "kernels": 3, "jobs": 2})
