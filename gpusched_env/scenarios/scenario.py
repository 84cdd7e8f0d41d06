"""Scenarios: validated data that names a GPU, tenants and what a scheduler may do.

Files are YAML, the shipped ones in this folder; unknown keys are rejected. Paths in a file, of workloads, traces and a
GPU, are relative to it. The same object drives the command line, ``gym.make`` keyword arguments and the devices.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gpusched_env.data import recorded_names
from gpusched_env.data.dependent_kernels import is_measured_chain, measured_of
from gpusched_env.data.parboil import is_parboil, parboil_of
from gpusched_env.data.products import is_product_chain, product_chain_of
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.hardware.specs import is_gpu_path
from gpusched_env.reading import Duration, FileName, Time, checked, parse_yaml, read_text
from gpusched_env.scenarios.games import GAMES
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.scenarios.workload_sets import Substitute, Variant, WorkloadSets, problem_with_sets
from gpusched_env.workload.cores.spec import CpuCores, problem_with_cores
from gpusched_env.workload.dependent import chain_of, is_chain
from gpusched_env.workload.generated_names import irregular_graph, is_irregular
from gpusched_env.workload.kernel import Physics
from gpusched_env.workload.tenant import Tenant, Trace
from gpusched_env.workload.workload import is_workload_path

CommandName = Literal["launch", "preempt", "partition", "reject", "synchronise", "reshape", "throttle", "budget"]
PreemptionName = Literal["drain", "save", "reset", "save-part"]
Contexts = Literal["shared", "per-tenant"]
RewardWeight = Annotated[float, Meta(ge=0, le=1e18)]
_GENERATED: Final[tuple[tuple[Callable[[str], bool], Callable[[str], object]], ...]] = (
    (is_irregular, irregular_graph),
    (is_chain, chain_of),
    (is_product_chain, product_chain_of),
    (is_measured_chain, measured_of),
    (is_parboil, parboil_of),
)
"""Workloads that are made from the parameters in their names: which they are, and what reads these."""


class Reward(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Weights of the cost terms; the reward of a step is minus their weighted sum over its interval.

    Every term is an integral over time, so that an episode's return is exactly minus the weighted sum
    that the term names. Jobs that are not completed at the end are charged as if each were done afterwards,
    alone on the GPU (:mod:`gpusched_env.scheduling.reward`).
    """

    turnaround: RewardWeight = 0.0
    """Cost of a millisecond of turnaround of a job (times the tenant's weight)."""
    slowdown: RewardWeight = 0.0
    """Cost of a unit of turnaround over the tenant's turnaround alone (times the tenant's weight)."""
    slo_miss: RewardWeight = 0.0
    """Cost of a job that exceeds its SLO (times the tenant's weight)."""
    energy: RewardWeight = 0.0
    """Cost of a joule."""
    makespan: RewardWeight = 0.0
    """Cost of a millisecond until the workload is done."""
    lost_progress: RewardWeight = 0.0
    """Cost of a job that a best-effort tenant (a closed loop without an objective) has completed less than it would
    have alone in the same time (times the tenant's weight)."""
    throttled: RewardWeight = 0.0
    """Cost of a millisecond for which a CPU core stood because its budget was spent: what its processes lost."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scheduling problem."""

    name: FileName
    """Name of results and, if registered, of the environment."""
    summary: str = ""
    gpu: str
    """Name of a GPU (``gpusched list gpus``), or path of a specification of one's own (``.yaml``)."""
    tenants: Annotated[tuple[Tenant, ...], Meta(min_length=1)]
    """Tenants that share the GPU."""
    horizon_us: Duration
    """Simulated time at which the episode is truncated."""
    arrivals_until_us: Duration | None = None
    """Nobody sends a job any more after this, but for clients of a closed loop, who wait for an answer; ``None``: until
    the horizon. Where the horizon is further off than the longest objective, each job that came is in time or late at
    the end, and none is free because the end is near."""
    decision_us: Time = 0.0
    """Host time of one decision: its command takes effect that much later, decisions queue up."""
    throttle_us: Annotated[float, Meta(ge=0, le=3.6e9)] = 2_000.0
    """How much later a tenant's next job begins when it was throttled: what a change of its pause costs its host (about
    2 ms: Chen et al., GPUColo, ICDCS 2024)."""
    restart_us: Annotated[float, Meta(ge=0, le=3.6e9)] = 0.0
    """Tenants are processes under MPS, which are started anew with another share of the SMs: the next job of a tenant
    begins so much later when its partition was set, and launches have no partitions of their own (5 to 15 s: Chen et
    al., GPUColo, ICDCS 2024). 0: a partition is of launches, and may change between two."""
    stretch: Annotated[float, Meta(ge=1, le=1000)] = 1.0
    """Slow motion: kernels with their traffic, copies, host times, arrivals, objectives and the horizon take so many
    times as long; latencies of the GPU and decisions do not (:mod:`gpusched_env.scenarios.variants`)."""
    load: Annotated[float, Meta(gt=0, le=100)] = 1.0
    """Jobs arrive so many times as often: a factor on the rates of arrivals, under which periods and think times shrink
    (:mod:`gpusched_env.scenarios.variants`)."""
    commands: tuple[CommandName, ...] = ("launch",)
    """What a scheduler may do besides waiting. An environment's agent launches, unless it is asked for more."""
    stream_priorities: tuple[Annotated[int, Meta(le=0)], ...] = (0, -1)
    """Stream priorities that an agent can choose for a launch."""
    streams: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Streams of the scheduler's own, into which it can launch any tenant's kernels."""
    preemption: Annotated[tuple[PreemptionName, ...], Meta(min_length=1)] = ("drain", "save", "reset")
    """Ways of preempting that an agent can choose, if ``preempt`` is among the commands; ``save-part``: only the blocks
    on a quarter, half or three quarters of the SMs are saved."""
    contexts: Contexts = "shared"
    """``shared``: all tenants in one context (streams, MPS); ``per-tenant``: time-sliced processes."""
    host_contention: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    """Tenants are threads of one process: each other tenant whose host is at work lengthens host times by this share
    (recorded for two threads of PyTorch: 0.6 to 0.95 for three of four networks). 0: they are processes of their own,
    as with ``per-tenant`` contexts always."""
    waiting_contention: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    """Where tenants are threads of one process, the share by which each other tenant lengthens host times whose host
    has a job and waits for the GPU, in a synchronisation or before a full queue."""
    lookahead: Annotated[int, Meta(ge=1, le=1024)] = 1
    """Pending kernels of each tenant that a scheduler sees."""
    interval_us: Time = 0.0
    """How long a decision of its environment stands unless ``gym.make`` is told otherwise
    (:mod:`gpusched_env.planning.interval`); 0: every launch is one. Schedulers are asked for every launch anyway."""
    launch_depth: Annotated[int, Meta(ge=1, le=1_000_000)] = 1024
    """Kernels that a host may have issued and unfinished before its next launch call blocks (CUDA's queue)."""
    cores: CpuCores | None = None
    """CPU cores that share the GPU's memory, and the processes on them; ``None``: the memory is the GPU's alone."""
    window: KernelWindow | None = None
    """What launches pass to be released out of order, by the memory that they touch; ``None``: streams keep theirs."""
    physics: Physics = 1
    """Version of the laws by which kernels run (:mod:`gpusched_env.workload.profile`): what was played with one plays
    again."""
    variation: bool = True
    """Jobs vary as the recorded iterations did; off: every job repeats the first recorded iteration."""
    profiles: ProfileError = ProfileError()
    """How the profiles are off that schedulers and agents are told, while the device runs the true kernels."""
    reward: Reward = Reward(turnaround=1.0)
    """What a scheduler is charged for: weights of the cost terms."""
    workload_sets: WorkloadSets | None = None
    """Variants to train on and to evaluate on; see :mod:`gpusched_env.scenarios.variants`."""

    @property
    def sends_until_us(self) -> float:
        """:attr:`arrivals_until_us`; ``inf``: until the horizon."""
        return math.inf if self.arrivals_until_us is None else self.arrivals_until_us

    @property
    def shown_ahead(self) -> int:
        """Pending kernels of each tenant that a scheduler sees: :attr:`lookahead`, or all of a window."""
        return self.lookahead if self.window is None else self.window.size

    @property
    def own_streams(self) -> int:
        """:attr:`streams`, as whoever knows of the scenario calls them; not those of a window, which are all alike."""
        return self.streams if self.window is None else 0

    @property
    def core_count(self) -> int:
        """CPU cores that share the GPU's memory; 0: none are simulated."""
        return 0 if self.cores is None else len(self.cores.cores)


def scenario_names() -> list[str]:
    """Names of the shipped scenarios, sorted."""
    folder = resources.files("gpusched_env.scenarios")
    return sorted(p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml"))


_OWN: dict[str, Path] = {}
"""Files of scenarios that were added by name."""


def add_scenario(path: str | Path) -> Scenario:
    """Make a scenario file known by its scenario's name, for :func:`load_scenario`; the file is read each time.

    Raises:
        InputError: as :func:`load_scenario`, or another scenario has that name.
    """
    file = Path(path).absolute()
    scenario = _read(file)
    taken = "a shipped scenario" if scenario.name in scenario_names() else _OWN.get(scenario.name, file)
    if taken != file:
        raise InputError(f"{path}: name {scenario.name!r} is that of {taken}; choose another")
    _OWN[scenario.name] = file
    return scenario


def load_scenario(name_or_path: str | Path | Scenario, **overrides: Any) -> Scenario:
    """A shipped scenario by name, one from a YAML file, or one as it is, with fields replaced.

    Args:
        name_or_path: a scenario, a name of :func:`scenario_names` or of an added scenario, or a path (it ends in
            ``.yaml`` or ``.yml``, or has a folder).
        overrides: new values of :class:`Scenario` fields, as in YAML (see :func:`override`).

    Raises:
        InputError: names the file, the field and the value at fault.
    """
    name = str(name_or_path)
    if isinstance(name_or_path, Scenario):
        scenario = name_or_path
    elif name.endswith((".yaml", ".yml")) or os.sep in name:
        scenario = _read(Path(name))
    elif name in _OWN:
        scenario = _read(_OWN[name])
    elif name in scenario_names():
        scenario = _shipped(name)
    else:
        if name in GAMES:
            raise InputError(
                f"{name} is no scenario of tenants that share a GPU; gpusched rank and gpusched train know it, "
                f"and gymnasium.make('gpusched/{name}-v0')"
            )
        hint = did_you_mean(name, (*scenario_names(), *_OWN))
        raise InputError(f"unknown scenario {name!r}; {hint} (a file of your own ends in .yaml)")
    return override(scenario, **overrides) if overrides else scenario


@functools.cache
def _shipped(name: str) -> Scenario:
    where = f"scenarios/{name}.yaml"
    text = (resources.files("gpusched_env.scenarios") / f"{name}.yaml").read_text(encoding="utf-8")
    return make_scenario(parse_yaml(text, where), where)


def _read(file: Path) -> Scenario:
    """The scenario in a file, with the paths in it."""
    scenario = make_scenario(parse_yaml(read_text(file), str(file)), str(file))

    def with_path(user: Tenant | Substitute, place: str) -> Any:
        name = user.workload
        asked = next((read for known, read in _GENERATED if known(name)), None)
        if asked is not None:
            try:
                asked(name)
            except InputError as error:
                raise InputError(f"{file}: {place}.workload: {error}") from error
        elif is_workload_path(name):
            name = str(file.parent / name)
            if not Path(name).is_file():
                raise InputError(f"{file}: {place}.workload: no such file: {name}")
        elif name not in recorded_names():
            raise InputError(f"{file}: {place}.workload: unknown {name!r}; {did_you_mean(name, recorded_names())}")
        arrivals = user.arrivals
        if isinstance(arrivals, Trace) and arrivals.file is not None:
            played = str(file.parent / arrivals.file)
            if not Path(played).is_file():
                raise InputError(f"{file}: {place}.arrivals.file: no such file: {played}")
            arrivals = msgspec.structs.replace(arrivals, file=played)
        return msgspec.structs.replace(user, workload=name, arrivals=arrivals)

    def with_paths(variants: tuple[Variant, ...], place: str) -> tuple[Variant, ...]:
        return tuple(
            {name: with_path(new, f"workload_sets.{place}[{i}].{name}") for name, new in variant.items()}
            for i, variant in enumerate(variants)
        )

    sets = scenario.workload_sets
    if sets is not None:
        sets = WorkloadSets(train=with_paths(sets.train, "train"), held_out=with_paths(sets.held_out, "held_out"))
    return msgspec.structs.replace(
        scenario,
        gpu=str(file.parent / scenario.gpu) if is_gpu_path(scenario.gpu) else scenario.gpu,
        tenants=tuple(with_path(tenant, f"tenants[{i}]") for i, tenant in enumerate(scenario.tenants)),
        workload_sets=sets,
    )


def override(scenario: Scenario, **changes: Any) -> Scenario:
    """``scenario`` with fields replaced; values as in YAML or as Python objects.

    ``tenants`` may be a whole new list, or a mapping from tenant names to fields to replace
    (``{"inference": {"arrivals": {"kind": "poisson", "rate_per_s": 100}}}``). With other workloads the scenario
    has no ``workload_sets`` any more, unless new ones are given.

    Raises:
        InputError: unknown field or invalid value.
    """
    data = msgspec.to_builtins(scenario)
    for key, value in changes.items():
        try:
            value = msgspec.to_builtins(value)
        except RecursionError as error:
            raise InputError(f"override {key}: contains itself, or is nested too deeply") from error
        if key == "tenants" and isinstance(value, dict):
            by_name = {tenant["name"]: tenant for tenant in data["tenants"]}
            for name, fields in value.items():
                if name not in by_name:
                    raise InputError(f"override tenants.{name}: no such tenant; {did_you_mean(str(name), by_name)}")
                if not isinstance(fields, dict):
                    raise InputError(f"override tenants.{name} must be a mapping of its fields, got {fields!r}")
                by_name[name].update(fields)
        else:
            data[key] = value
    if "workload_sets" not in changes and _workloads(data) != [tenant.workload for tenant in scenario.tenants]:
        # They are about the tenants and workloads that were there.
        data["workload_sets"] = None
    return make_scenario(data, f"override of {scenario.name}")


def _workloads(data: Any) -> list[Any]:
    tenants = data["tenants"] if isinstance(data["tenants"], (list, tuple)) else []
    return [tenant.get("workload") if isinstance(tenant, dict) else None for tenant in tenants]


def make_scenario(data: Any, where: str = "scenario") -> Scenario:
    """A scenario from plain data (as in YAML); ``where`` names the source in errors.

    Raises:
        InputError: unknown field or invalid value.
    """
    scenario = checked(data, Scenario, where)
    infinite = _infinite(data)
    if infinite:
        raise InputError(f"{where}: {infinite} must be a finite number")
    names = [tenant.name for tenant in scenario.tenants]
    if len(set(names)) != len(names):
        raise InputError(f"{where}: tenant names must differ, got {names}")
    for i, tenant in enumerate(scenario.tenants):
        if tenant.arrivals.needs_job_count and tenant.jobs is None:
            raise InputError(f"{where}: tenants[{i}].jobs must be set: a backlog is finite")
    if scenario.cores is not None:
        wrong_cores = problem_with_cores(scenario.cores, names)
        if wrong_cores is not None:
            raise InputError(f"{where}: {wrong_cores}")
    if scenario.workload_sets is not None:
        wrong = problem_with_sets(scenario.workload_sets, scenario.tenants, scenario.cores)
        if wrong is not None:
            raise InputError(f"{where}: {wrong}")
    return scenario


def _infinite(data: Any) -> str:
    """Where a number in nested plain data is infinite or NaN; empty if none is."""
    if isinstance(data, float):
        return "" if math.isfinite(data) else "its value"
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list | tuple) else ()
    for key, value in items:
        if inner := _infinite(value):
            return str(key) if inner == "its value" else f"{key}.{inner}"
    return ""
