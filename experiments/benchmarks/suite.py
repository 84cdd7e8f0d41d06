"""All measurements of ``gpusched bench``, and the figures that they amount to."""

from __future__ import annotations

import importlib.util
import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpusched_env.experiments.benchmarks.environments import (
    autoresets,
    random_episode,
    single_cartpole,
    single_decisions,
    vector_cartpole,
    vector_decisions,
)
from gpusched_env.experiments.benchmarks.first_use import first_uses
from gpusched_env.experiments.benchmarks.policies import (
    SCENARIOS,
    network_decisions,
    scheduler_decisions,
    torch_decisions,
)
from gpusched_env.experiments.benchmarks.scaling import SMS, decisions, made_up_problem
from gpusched_env.experiments.benchmarks.timing import Measurement, Timing, take_turns
from gpusched_env.versions import versions

SCHEMA = "gpusched-bench/1"
DECISION_US = 20.0
"""What a decision of a learned policy may take at most."""
UNDISTURBED = 0.9
"""Processor over wall time from which a measurement counts as undisturbed by other processes."""

Basis = Literal["wall", "cpu"]
Timings = dict[str, list[Timing]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured in each turn."""

    rounds: int = 5
    copies: int = 256
    threads: int = 2
    steps: int = 150
    warm_up: int = 2000
    cartpole_steps: int = 50
    single_steps: int = 20_000
    learners: int = 64
    kernels: int = 800
    policy_states: int = 1000
    torch_states: int = 100


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, and what it should be."""

    what: str
    value: float
    unit: str = ""
    target: float | None = None
    at_least: bool = True
    """Whether the target is a lower limit."""
    aim: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; ``None`` without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


def measure(sizes: Sizes, on_progress: Callable[[int, int, str], None] = lambda done, total, name: None) -> Timings:
    """Measure everything; ``on_progress`` is told how many of how many turns are done, and what comes next."""
    groups = [_environments, _scaling, _policies]
    if importlib.util.find_spec("sb3_contrib") is not None:
        groups += [_learning, _torch_policies]
    timings: Timings = {}
    total = len(groups) + 1
    for number, group in enumerate(groups):
        on_progress(number, total, group.__name__.strip("_"))
        timings |= take_turns(group(sizes), sizes.rounds)
    on_progress(len(groups), total, "first use")
    cold, cached = first_uses()
    return {**timings, "first_use": [cold], "first_use_cached": [cached]}


def _environments(sizes: Sizes) -> dict[str, Measurement]:
    _, actions = random_episode("compiled", sizes.single_steps)
    return {
        "vector": vector_decisions(sizes.copies, sizes.threads, sizes.steps, sizes.warm_up),
        "vector_cartpole": vector_cartpole(sizes.copies, sizes.cartpole_steps),
        "single": single_decisions(actions),
        "single_cartpole": single_cartpole(len(actions)),
        "autoreset": autoresets(),
    }


def _scaling(sizes: Sizes) -> dict[str, Measurement]:
    problems = {
        "kernel_alone": {"tenants": 1},
        "kernel_alone_million": {"tenants": 1, "blocks": 10**6},
        "two_tenants": {},
        "two_tenants_million": {"blocks": 10**6},
        "sms_1320": {"sms": 10 * SMS, "blocks": 10**4},
        "small_kernel": {"tenants": 1, "blocks": 64},
        "small_kernels_64_tenants": {"tenants": 64, "blocks": 64},
        "tenants_64": {"tenants": 64},
    }
    return {name: decisions(made_up_problem(kernels=sizes.kernels, **given)) for name, given in problems.items()}


def _policies(sizes: Sizes) -> dict[str, Measurement]:
    found: dict[str, Measurement] = {}
    for tenants in SCENARIOS:
        found[f"network_{tenants}"] = network_decisions("slots", tenants, sizes.policy_states)
        found[f"scheduler_{tenants}"] = scheduler_decisions("slots", tenants, sizes.policy_states)
        found[f"rule_{tenants}"] = network_decisions("rule", tenants, sizes.policy_states)
        found[f"rule_scheduler_{tenants}"] = scheduler_decisions("rule", tenants, sizes.policy_states)
    return found


def _torch_policies(sizes: Sizes) -> dict[str, Measurement]:
    return {f"torch_{tenants}": torch_decisions(tenants, sizes.torch_states) for tenants in SCENARIOS}


def _learning(sizes: Sizes) -> dict[str, Measurement]:
    from gpusched_env.experiments.benchmarks.learning import (
        DEFAULTS,
        LARGE_BATCHES,
        NullVecEnv,
        native_vec_env,
        training_frames,
    )

    found: dict[str, Measurement] = {}
    for name, settings in (("ppo", DEFAULTS), ("ppo_large_batches", LARGE_BATCHES)):
        env = native_vec_env(sizes.learners, sizes.threads)
        found[name] = training_frames(env, settings)
        found[f"{name}_null"] = training_frames(NullVecEnv(native_vec_env(sizes.learners, 1)), settings)
    return found


# ---- figures --------------------------------------------------------------------------------------


def basis_of(timings: Timings) -> Basis:
    """Wall time where the machine was free, else processor time of the calling thread."""
    shares = [t.cpu_s / t.wall_s for name, turns in timings.items() if "first_use" not in name for t in turns]
    return "wall" if statistics.median(shares) >= UNDISTURBED else "cpu"


def rows_of(timings: Timings, basis: Basis) -> list[Row]:
    """The figures; those whose measurement is missing are left out."""

    def seconds(timing: Timing) -> float:
        return timing.wall_s if basis == "wall" else timing.cpu_s

    def each(name: str) -> list[float]:
        """Seconds for one, in every round."""
        return [seconds(t) / t.count for t in timings[name]]

    def rate(name: str) -> float:
        return 1.0 / statistics.median(each(name))

    def speed(one: str, other: str) -> float:
        """How many times as fast ``one`` is, the median over rounds."""
        return statistics.median(b / a for a, b in zip(each(one), each(other), strict=True))

    episode = timings["single"][0].count
    reset_share = (1.0 / rate("autoreset")) / (episode / rate("vector") + 1.0 / rate("autoreset"))
    rows = [
        Row("vector environment, 256 copies, 2 threads", rate("vector"), "decisions/s", 3e5, aim=1e6),
        Row("... over CartPole in a SyncVectorEnv of 256", speed("vector", "vector_cartpole"), "x", 1.5),
        Row("... share of autoresets, not counted above", 100.0 * reset_share, "%"),
        Row("single environment through gym.make", rate("single"), "decisions/s", 6e4, aim=2e5),
        Row("... over CartPole through gym.make", speed("single", "single_cartpole"), "x"),
    ]
    if "ppo" in timings:
        null, large = "null environment's frames/s", "the same, batches of 1024, 4 epochs"
        rows += [
            Row("MaskablePPO on the vector environment", rate("ppo"), "frames/s"),
            Row(f"... of a {null}", 100.0 * speed("ppo", "ppo_null"), "%", 90.0),
            Row(f"... {large}", 100.0 * speed("ppo_large_batches", "ppo_large_batches_null"), "%"),
        ]
    for tenants in SCENARIOS:
        for what, network, scheduler in (("rule", "rule", "rule_scheduler"), ("slots", "network", "scheduler")):
            alone, whole = (1e6 / rate(f"{name}_{tenants}") for name in (network, scheduler))
            rows += [
                Row(f"learned policy ({what}), {tenants} tenants", alone, "us", DECISION_US, at_least=False),
                Row("... from view to command", whole, "us", DECISION_US, at_least=False),
            ]
        if f"torch_{tenants}" in timings:
            rows.append(Row("... in torch over compiled", speed(f"network_{tenants}", f"torch_{tenants}"), "x"))
    rows += [
        Row("kernel of 10^3 blocks alone", 1e6 / rate("kernel_alone"), "us"),
        Row("... of 10^6 blocks", speed("kernel_alone", "kernel_alone_million"), "x", 3.0, at_least=False),
        Row("kernels of two tenants, 10^3 blocks each", 1e6 / rate("two_tenants"), "us"),
        Row("... 10^6 blocks each", speed("two_tenants", "two_tenants_million"), "x", 3.0, at_least=False),
        Row("... 1,320 SMs and 10^4 blocks", speed("two_tenants", "sms_1320"), "x", 1.5, at_least=False),
        Row(
            "64 tenants over one, kernels of 64 blocks",
            speed("small_kernel", "small_kernels_64_tenants"),
            "x",
            64.0,
            at_least=False,
        ),
        Row(
            "64 tenants over one, kernels of 10^3 blocks",
            speed("kernel_alone", "tenants_64"),
            "x",
            64.0,
            at_least=False,
        ),
        Row("first use, compilation included", seconds(timings["first_use"][0]), "s", 40.0, at_least=False),
        Row("every later start", seconds(timings["first_use_cached"][0]), "s"),
    ]
    return rows


def results_dict(timings: Timings, sizes: Sizes) -> dict[str, Any]:
    """Everything as plain values: what was measured on what, raw timings, and the figures."""
    basis = basis_of(timings)
    by_wall, by_cpu = rows_of(timings, "wall"), rows_of(timings, "cpu")
    decisive = by_wall if basis == "wall" else by_cpu
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "platform": platform.platform(),
            "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        },
        "sizes": asdict(sizes),
        "basis": basis,
        "rows": [
            {**asdict(row), "holds": row.holds, "wall": wall.value, "cpu": cpu.value}
            for row, wall, cpu in zip(decisive, by_wall, by_cpu, strict=True)
        ],
        "timings": {name: [asdict(t) for t in turns] for name, turns in timings.items()},
    }


def processor() -> str:
    """The processor's name, as far as the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
