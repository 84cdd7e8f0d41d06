"""Random cases: a problem, who plays it, and how."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

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
from gpusched_env.experiments.fuzz.dice import Dice, draw_gpu, modified_timing, random_trace
from gpusched_env.experiments.fuzz.engines import ENGINES, with_engines
from gpusched_env.experiments.fuzz.moves import moves_of
from gpusched_env.experiments.fuzz.variants import (
    CORES,
    THROTTLED,
    WINDOWS,
    adapted,
    beside_cores,
    has_place,
    reshaped,
    synchronising,
    throttled,
    with_window,
)
from gpusched_env.experiments.fuzz.workloads import SOURCE, WorkloadSize, draw_workload, evenly, fits, size_of
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.scenario import CommandName, Contexts, PreemptionName, Reward, Scenario
from gpusched_env.scenarios.set_up import set_up_of
from gpusched_env.workload.tenant import (
    ArrivalProcess,
    Backlog,
    Bursts,
    ClosedLoop,
    Periodic,
    Poisson,
    Regimes,
    Tenant,
)
from gpusched_env.workload.workload import OpKind, Workload

ENVIRONMENTS = 0.2
"""Share of cases that are played through the Gymnasium environment."""
TILED = 0.12
"""Share of cases of programs most of whose kernels need the tiles of others, and of a player that mostly synchronises
them."""
LEAST_TILED = 40
"""Kernels that would run alone within the horizon of such a case: some wait for others that come too late."""
ONE_PROCESS = 0.25
"""Share of cases whose tenants are threads of one process."""
DRAINED = 0.2
"""Share of cases in which arrivals end before the horizon."""
MOST_COMMANDS = 3000
NEVER_DRAWN = ("hindsight", "cusync-search", "slo-aware-ideal")
"""Schedulers that are not drawn: an episode of theirs is dozens of simulations."""
USUAL_BLOCKS = 20_000
"""Blocks of most episodes: a device goes block by block."""
MOST_WAVES = 10_000
"""Waves of an episode whose blocks are recorded (recorded waves are not jumped over)."""
MOST_TENANTS = 40
EVEN_WAVES = 0.4
"""Share of episodes whose kernels of several waves fill SMs evenly."""
MODES: tuple[PreemptionName, ...] = ("drain", "save", "reset", "save-part")
RECORDED_GPUS = ("h100-sxm", "h200-sxm", "a100-sxm")
"""Large enough for the recorded workloads."""
FOREIGN_GPUS = ("h100-sxm", "rtx-3090", "v100-sxm", "tx2")
"""GPUs that some workloads were recorded on which run on another one."""


def draw_case(seed: int, episode: int) -> Case:
    """The case of one episode; it depends on nothing else."""
    dice = Dice(seed, episode)
    dice.tidy = dice.chance(0.25)
    drawn = _machine(dice)
    # Dice of their own, here and below: an episode without such a thing is what it was before there were any.
    own = [Dice(seed, episode, at) for at in range(1, 12)]
    for its in own:
        its.tidy = dice.tidy
    more, others, process, tiles, tail, tiled, hosts, memory, forms, engines, waves = own
    is_tiled = tiled.chance(TILED) and drawn.own
    if is_tiled:
        names = list(drawn.workloads)[: tiled.integer(1, 2)]
        drawn = dataclasses.replace(
            drawn, workloads={name: draw_workload(tiled, name, drawn.spec, tiled=True) for name in names}
        )
    if waves.chance(EVEN_WAVES):
        drawn = dataclasses.replace(
            drawn,
            workloads={
                name: evenly(workload, drawn.spec if workload.gpu == drawn.spec.name else load_gpu(workload.gpu))
                for name, workload in drawn.workloads.items()
            },
        )
    sizes = {name: size_of(workload, drawn.spec) for name, workload in drawn.workloads.items()}
    kernels = dice.weighted({dice.log_integer(10, 150): 4.0, dice.log_integer(100, 1000): 5.0, 1500: 0.1})
    kernels = max(kernels, LEAST_TILED) if is_tiled else kernels
    if dice.chance(0.98):
        kernels = min(kernels, max(2, int(USUAL_BLOCKS / max(size.blocks for size in sizes.values()))))
    tenants, horizon_us = _tenants(dice, drawn.workloads, sizes, kernels)
    # Actions of an environment synchronise no tiles.
    env = dice.chance(ENVIRONMENTS) and not is_tiled
    player = _actions(dice) if env else _player(dice, horizon_us / kernels)
    contexts = set_up_of(make_scheduler(player.name)).contexts if isinstance(player, Baseline) else None
    summary = f"drawn by the fuzzer: seed {seed}, episode {episode}"
    scenario = _scenario(dice, summary, drawn, tenants, horizon_us, contexts)
    many_waves = kernels * max(size.waves / size.kernels for size in sizes.values()) > MOST_WAVES
    case = Case(
        scenario=scenario,
        gpu=drawn.gpu,
        workloads={name: workload for name, workload in drawn.workloads.items() if workload.source == SOURCE},
        spreads=_spreads(dice),
        seed=dice.seed(),
        player=player,
        env=_env(dice, len(tenants), horizon_us / kernels) if env else None,
        record=dice.pick(("kernels", "kernels", "jobs"))
        if many_waves
        else dice.weighted({"blocks": 5, "kernels": 3, "jobs": 2}),
        most_commands=MOST_COMMANDS,
        before=dice.log_integer(1, 60) if dice.chance(0.15) else 0,
        snapshot=SnapshotPlan(step=dice.log_integer(1, 100) - 1, fresh=dice.chance(0.5)) if dice.chance(0.15) else None,
    )
    case = replace(case, scenario=replace(scenario, profiles=_profiles(dice)))
    if tail.chance(DRAINED):
        until_us = _rounded(tail, tail.number(0.1, 1.0) * horizon_us)
        case = replace(case, scenario=replace(case.scenario, arrivals_until_us=until_us))
    if isinstance(case.player, RandomCommands):
        weights = {move.NAME: tiles.pick(move.DRAWN_WEIGHTS) for move in moves_of("tiles")}
        case = replace(case, player=replace(case.player, weights=case.player.weights | weights))
    if process.chance(ONE_PROCESS):
        at_work, waiting = (0.0 if process.chance(0.3) else process.number(0.1, 3.0) for _ in range(2))
        one = replace(case.scenario, host_contention=at_work, waiting_contention=waiting)
        case = replace(case, scenario=one)
    if hosts.chance(THROTTLED):
        case = throttled(hosts, case, horizon_us / kernels)
    if memory.chance(CORES):
        case = beside_cores(memory, case, drawn.spec, horizon_us / kernels)
    if is_tiled:
        return reshaped(forms, synchronising(tiled, case))
    plain = all(map(has_place, drawn.workloads.values()))
    if plain and more.chance(WINDOWS):
        case = with_window(more, case)
    case = reshaped(forms, adapted(others, case, capturable=plain))
    return with_engines(engines, case) if case.workloads and engines.chance(ENGINES) else case


@dataclass(frozen=True)
class _DrawnMachine:
    """The machine that a case runs on, and what there is to run."""

    name: str
    gpu: GpuSpec | None
    """The GPU of the case itself; ``None``: the shipped one of this name."""
    spec: GpuSpec
    workloads: dict[str, Workload]
    own: bool = True
    """Whether the workloads are drawn, not recorded."""


def _machine(dice: Dice) -> _DrawnMachine:
    if dice.chance(0.03):
        name = dice.pick(RECORDED_GPUS)
        gpu = modified_timing(dice, name) if dice.chance(0.5) else None
        spec = gpu or load_gpu(name)
        return _DrawnMachine(name, gpu, spec, _recorded_workloads(dice, spec), own=False)
    name, gpu = draw_gpu(dice)
    spec = gpu or load_gpu(name)
    return _DrawnMachine(name, gpu, spec, _drawn_workloads(dice, spec))


def _scenario(
    dice: Dice,
    summary: str,
    drawn: _DrawnMachine,
    tenants: tuple[Tenant, ...],
    horizon_us: float,
    contexts: Contexts | None,
) -> Scenario:
    """``contexts``: what the player asks for."""
    return Scenario(
        name="fuzz",
        summary=summary,
        gpu=drawn.name,
        tenants=tenants,
        horizon_us=horizon_us,
        decision_us=0.0 if dice.chance(0.6) else dice.number(0.1, 20.0),
        commands=("launch", *(move.NAME for move in moves_of("any") if dice.chance(0.5)), *_tile_commands(drawn)),
        stream_priorities=dice.some(tuple(-p for p in range(drawn.spec.priorities))),
        preemption=dice.some(MODES),
        contexts=contexts or ("per-tenant" if dice.chance(0.3) else "shared"),
        lookahead=dice.weighted({1: 2, 2: 1, 3: 1, 4: 1, dice.integer(5, 16): 2}),
        streams=dice.weighted({0: 3, 1: 1, 2: 1, 3: 1, 4: 1}),
        launch_depth=1024 if dice.chance(0.5) else dice.log_integer(1, 16),
        variation=dice.chance(0.5),
        reward=Reward(
            **{name: 0.0 if dice.chance(0.4) else dice.number(0.1, 10.0) for name in Reward.__struct_fields__}
        ),
    )


def _tile_commands(drawn: _DrawnMachine) -> tuple[CommandName, ...]:
    """Commands that are offered where kernels need the tiles of others."""
    workloads = drawn.workloads.values()
    needed = any(op.tiles >= 0 for workload in workloads for variant in workload.variants for op in variant.all_ops)
    return tuple(move.NAME for move in moves_of("tiles")) if needed else ()


# ---- workloads and tenants -----------------------------------------------------------------------


def _recorded_workloads(dice: Dice, gpu: GpuSpec) -> dict[str, Workload]:
    """One to three shipped workloads that fit on the GPU."""
    some = {name: load_workload(name) for name in dice.shuffled(recorded_names())[: dice.integer(1, 3)]}
    fitting = {name: workload for name, workload in some.items() if fits(workload, gpu)}
    return fitting or {"toy_urgent": load_workload("toy_urgent")}


def _drawn_workloads(dice: Dice, gpu: GpuSpec) -> dict[str, Workload]:
    workloads = {}
    for i in range(dice.weighted({1: 3, 2: 4, 3: 2, 4: 1})):
        name = f"w{i}"
        workloads[name] = draw_workload(dice, name, gpu)
        if dice.chance(0.1):
            elsewhere = draw_workload(dice, name, load_gpu(dice.pick(FOREIGN_GPUS)))
            if fits(elsewhere, gpu):
                workloads[name] = elsewhere
    if gpu.name == "toy-4sm" and dice.chance(0.2):
        workloads["toy_batch"] = load_workload("toy_batch")
    return workloads


def _tenants(
    dice: Dice, workloads: Mapping[str, Workload], sizes: Mapping[str, WorkloadSize], kernels: int
) -> tuple[tuple[Tenant, ...], float]:
    """Tenants, and a horizon (us) within which they would run about ``kernels`` kernels alone."""
    count = dice.weighted({1: 1, 2: 3, 3: 3, 4: 2, 5: 0.7, 6: 0.7, 7: 0.7, 8: 0.7, dice.integer(9, MOST_TENANTS): 0.4})
    names = list(workloads)
    chosen = [dice.pick(names) for _ in range(count)]
    rate = sum(1.0 / sizes[name].kernel_us for name in chosen)
    horizon_us = _rounded(dice, max(1.0, kernels / rate))
    finite = dice.pick((0.0, 0.5, 1.0))
    tenants: list[Tenant] = []
    for i, name in enumerate(chosen):
        if tenants and dice.chance(0.3):
            # Its own twin, for ties.
            tenants.append(replace(dice.pick(tenants), name=f"t{i}"))
        else:
            job_us, is_finite = sizes[name].job_us, dice.chance(finite)
            tenants.append(_tenant(dice, f"t{i}", workloads[name], job_us, horizon_us, is_finite))
    if finite == 1.0 and dice.chance(0.7):
        horizon_us *= 5.0
    return tuple(tenants), horizon_us


def _tenant(dice: Dice, name: str, workload: Workload, job_us: float, horizon_us: float, finite: bool) -> Tenant:
    arrivals = _arrivals(dice, job_us, horizon_us)
    expected = max(1, round(horizon_us / job_us))
    ops = [op for variant in workload.variants for op in variant.all_ops]
    capturable = not any(op.kind is OpKind.GRAPH or op.children or op.tiles >= 0 for op in ops)
    # Any iteration time can be reached where all variants have host time.
    stretched = all(any(op.host_us > 0.0 for op in variant.all_ops) for variant in workload.variants)
    tenant = Tenant(
        name=name,
        workload=workload.name,
        arrivals=arrivals,
        jobs=dice.log_integer(1, min(200, 2 * expected)) if finite or arrivals.needs_job_count else None,
        priority=dice.integer(0, 3),
        weight=dice.pick((0.0, 1.0, 1.0, dice.number(0.1, 10.0))),
        slo_us=None if dice.chance(0.4) else max(0.1, job_us * dice.number(0.1, 10.0)),
        launch="graph" if dice.chance(0.25) and capturable else "eager",
        iteration_us=job_us * dice.uniform(0.5, 3.0) if stretched else None,
    )
    # A graph has no host times to scale.
    return tenant if tenant.launch == "eager" else replace(tenant, iteration_us=None)


def _arrivals(dice: Dice, job_us: float, horizon_us: float) -> ArrivalProcess:
    start_us = 0.0 if dice.chance(0.6) else dice.number(0.1, max(0.2, 0.3 * horizon_us))
    # At most about 300 jobs arrive within the horizon.
    gap_us = max(horizon_us / 300.0, job_us * dice.number(0.2, 4.0))
    match dice.weighted(
        {"closed": 4, "poisson": 2, "periodic": 3, "bursts": 1, "regimes": 1, "trace": 1, "backlog": 2}
    ):
        case "closed":
            think_us = 0.0 if dice.chance(0.5) else dice.number(0.1, max(0.2, job_us))
            return ClosedLoop(start_us=start_us, think_us=think_us)
        case "poisson":
            return Poisson(start_us=start_us, rate_per_s=1e6 / gap_us)
        case "periodic":
            return Periodic(start_us=start_us, period_us=_rounded(dice, gap_us))
        case "bursts":
            size = dice.pick((1.0, 2.0, 4.5))
            return Bursts(start_us=start_us, rate_per_s=1e6 / gap_us / size, mean_size=size)
        case "regimes":
            calm_per_s = 0.0 if dice.chance(0.3) else 0.5e6 / gap_us
            lasts = {"calm_us": gap_us * dice.number(0.5, 5.0), "busy_us": gap_us * dice.number(0.5, 5.0)}
            return Regimes(start_us=start_us, rate_per_s=calm_per_s, busy_rate_per_s=1.5e6 / gap_us, **lasts)
        case "trace":
            return replace(random_trace(dice, gap_us), start_us=start_us)
        case _:
            return Backlog(start_us=start_us)


def _rounded(dice: Dice, value: float) -> float:
    """Half of the time a number of one digit (rounded up), so that times coincide."""
    return value if dice.chance(0.5) else max(value, float(f"{value * 1.2:.0e}"))


# ---- who plays it, and how -----------------------------------------------------------------------


def _player(dice: Dice, kernel_us: float) -> Player:
    if dice.chance(0.25):
        return Baseline(
            name=dice.pick_by_name([name for name in scheduler_names(windowed=False) if name not in NEVER_DRAWN])
        )
    return RandomCommands(
        seed=dice.seed(),
        weights={
            "launch": dice.number(1.0, 10.0),
            "wait": dice.number(0.3, 3.0),
            **{move.NAME: dice.pick(move.DRAWN_WEIGHTS) for move in moves_of("any")},
        },
        illegal=dice.pick((0.0, 0.05, 0.2)),
        confined=dice.pick((0.0, 0.2, 0.8)),
        urgent=dice.pick((0.0, 0.3, 0.8)),
        elsewhere=dice.pick((0.0, 0.2, 0.7)),
        bounded=dice.pick((0.1, 0.4, 0.9)),
        wait_us=max(0.1, kernel_us * dice.number(0.05, 3.0)),
    )


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
