"""All measurements of ``gpusched lab bench``, and the figures that they amount to."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gpusched_env.devices.either import await_compiled
from gpusched_env.display.table import Table
from gpusched_env.experiments.benchmarks.environments import (
    Kind,
    autoresets,
    interval_decisions,
    network_decisions,
    random_episode,
    scheduler_decisions,
    single_cartpole,
    single_decisions,
    vector_cartpole,
    vector_decisions,
)
from gpusched_env.experiments.benchmarks.mechanisms import SMS, decisions, made_up_problem, pairs, periods_of_cores
from gpusched_env.experiments.benchmarks.timing import Elapsed, Measurement, first_uses, machine, take_turns
from gpusched_env.experiments.lib.pages import page
from gpusched_env.scenarios.games import load_room, places_of
from gpusched_env.versions import versions

SCHEMA = "gpusched-bench/1"
SCENARIOS = {2: "InferenceBesideTraining", 3: "PriorityFill", 8: "MultiTenantBurst"}
"""A scenario with each number of tenants whose policies are measured."""
POLICIES: tuple[tuple[Kind, str, str], ...] = (("rule", "rule", "rule_scheduler"), ("slots", "network", "scheduler"))
"""A kind of policy, and what its measurements are called: the network alone, and from view to command."""
WRAPPED = ("InferenceBesideTraining", "PriorityFill", "MultiTenantBurst", "ServingPoisson")
"""Scenarios that are measured under stable-baselines3's own wrappers."""
DECISION_US = 20.0
"""What a decision of a learned policy may take at most."""
UNDISTURBED = 0.9
"""Processor over wall time from which a measurement counts as undisturbed by other processes."""
BASES = {
    "wall": "Verdicts go by wall time.",
    "cpu": (
        "The machine was busy with other work, so verdicts go by the processor time of the calling thread: with two "
        "threads, which share the work as they come, about the wall time on a free machine."
    ),
}

Basis = Literal["wall", "cpu"]
Timings = dict[str, list[Elapsed]]


@dataclass(frozen=True, slots=True)
class BenchmarkSizes:
    """How much is measured in each turn."""

    rounds: int = 5
    copies: int = 256
    threads: int = 2
    steps: int = 150
    warm_up: int = 2000
    interval_copies: int = 64
    interval_steps: int = 60
    cartpole_steps: int = 50
    single_steps: int = 20_000
    wrapped_copies: int = 16
    wrapped_steps: int = 50
    learners: int = 64
    kernels: int = 800
    mechanism_copies: int = 8
    pairs: int = 100
    fleet_gpus: int = 16
    fleet_reports: int = 10
    cluster_copies: int = 16
    cluster_hours: float = 1.0
    policy_states: int = 1000
    torch_states: int = 100


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """A figure of the benchmarks, and what it should be."""

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


@dataclass(frozen=True, slots=True)
class GameBenchmarks:
    """What is measured of a game, and the figures that it amounts to."""

    measurements: Callable[[BenchmarkSizes], dict[str, Measurement]]
    rows: Callable[[Callable[[str], float], Callable[[str, str], float]], list[BenchmarkRow]]
    """Figures, made from how many a second of a measurement there are and how many times as fast one is as another."""


def measure(sizes: BenchmarkSizes, on_progress: Callable[[int, float], None] = lambda done, share: None) -> Timings:
    """Measure everything; ``on_progress`` is told how many groups of measurements are done, and their share."""
    await_compiled()
    groups = [_environments, _scaling, _mechanisms, _games, _policies]
    if importlib.util.find_spec("sb3_contrib") is not None:
        groups += [_wrapped, _learning]
    timings: Timings = {}
    for number, group in enumerate(groups):
        on_progress(number, number / (len(groups) + 1))
        timings |= take_turns(group(sizes), sizes.rounds)
    on_progress(len(groups), len(groups) / (len(groups) + 1))
    cold, cached = first_uses()
    return {**timings, "first_use": [cold], "first_use_cached": [cached]}


def _environments(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    actions = random_episode("compiled", sizes.single_steps)
    return {
        "vector": vector_decisions(sizes.copies, sizes.threads, sizes.steps, sizes.warm_up),
        "vector_cartpole": vector_cartpole(sizes.copies, sizes.cartpole_steps),
        **{
            name: interval_decisions(sizes.interval_copies, sizes.threads, sizes.interval_steps, futures=futures)
            for name, futures in (("interval", False), ("interval_futures", True))
        },
        "single": single_decisions(actions),
        "single_cartpole": single_cartpole(len(actions)),
        "autoreset": autoresets(),
    }


def _scaling(sizes: BenchmarkSizes) -> dict[str, Measurement]:
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


def _mechanisms(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    copies, threads = sizes.mechanism_copies, sizes.threads
    return {
        "pairs_row": pairs("row", sizes.pairs, copies, threads),
        "pairs_tile": pairs("tile", sizes.pairs, copies, threads),
        "periods": periods_of_cores(copies, threads),
    }


def _games(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    return {name: found for game in _benchmarks() for name, found in game.measurements(sizes).items()}


def _benchmarks() -> list[GameBenchmarks]:
    """Benchmarks of the games that have any."""
    return [load_room(place) for place in places_of("benchmarks").values()]


def _policies(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    found: dict[str, Measurement] = {}
    for tenants, scenario in SCENARIOS.items():
        alone = network_decisions(scenario, sizes.policy_states)
        for kind, network, scheduler in POLICIES:
            found[f"{network}_{tenants}"] = alone[kind]
            found[f"{scheduler}_{tenants}"] = scheduler_decisions(kind, scenario, sizes.policy_states)
    return found


def _wrapped(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    from gpusched_env.experiments.benchmarks.learning import wrapped_decisions

    return {
        f"{name}_{scenario}": measurement
        for scenario in WRAPPED
        for name, measurement in wrapped_decisions(scenario, sizes.wrapped_copies, sizes.wrapped_steps).items()
    }


def _learning(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    from gpusched_env.experiments.benchmarks.learning import SETTINGS, torch_decisions, training_frames

    found: dict[str, Measurement] = {}
    for name, settings in SETTINGS.items():
        found[name] = training_frames(sizes.learners, sizes.threads, settings, null=False)
        found[f"{name}_null"] = training_frames(sizes.learners, 1, settings, null=True)
    return found | {f"torch_{n}": torch_decisions(name, sizes.torch_states) for n, name in SCENARIOS.items()}


# ---- figures --------------------------------------------------------------------------------------


def basis_of(timings: Timings) -> Basis:
    """Wall time where the machine was free, else processor time of the calling thread."""
    shares = [t.cpu_s / t.wall_s for name, turns in timings.items() if "first_use" not in name for t in turns]
    return "wall" if statistics.median(shares) >= UNDISTURBED else "cpu"


def rows_of(timings: Timings, basis: Basis) -> list[BenchmarkRow]:
    """The figures; those whose measurement is missing are left out."""

    def seconds(timing: Elapsed) -> float:
        return timing.wall_s if basis == "wall" else timing.cpu_s

    def singles(name: str) -> list[float]:
        """Seconds for one, in every round."""
        return [seconds(t) / t.count for t in timings[name]]

    def rate(name: str) -> float:
        return 1.0 / statistics.median(singles(name))

    def us(name: str) -> float:
        return 1e6 / rate(name)

    def speed(one: str, other: str) -> float:
        """How many times as fast ``one`` is, the median over rounds."""
        return statistics.median(b / a for a, b in zip(singles(one), singles(other), strict=True))

    def at_most(what: str, one: str, other: str, most: float) -> BenchmarkRow:
        return BenchmarkRow(what, speed(one, other), "x", most, at_least=False)

    episode = timings["single"][0].count
    reset_share = (1.0 / rate("autoreset")) / (episode / rate("vector") + 1.0 / rate("autoreset"))
    rows = [
        BenchmarkRow("vector environment, 256 copies, 2 threads", rate("vector"), "decisions/s", 3e5, aim=1e6),
        BenchmarkRow("... over CartPole in a SyncVectorEnv of 256", speed("vector", "vector_cartpole"), "x", 1.5),
        BenchmarkRow("... share of autoresets, not counted above", 100.0 * reset_share, "%"),
        BenchmarkRow("decisions for 250 us of ServingPoisson, 2 threads", rate("interval"), "decisions/s", 2e4),
        BenchmarkRow("... with columns of sampled futures", rate("interval_futures"), "decisions/s", 5e3),
        BenchmarkRow("single environment through gym.make", rate("single"), "decisions/s", 6e4, aim=2e5),
        BenchmarkRow("... over CartPole through gym.make", speed("single", "single_cartpole"), "x"),
    ]
    for scenario in WRAPPED if f"native_{WRAPPED[0]}" in timings else ():
        native, made, plain = (f"{name}_{scenario}" for name in ("native", "made", "plain"))
        rows += [
            BenchmarkRow(f"{scenario}: native vector environment, 16 copies, 1 thread", us(native), "us"),
            BenchmarkRow("... by make_vec_env of stable-baselines3", us(made), "us"),
            BenchmarkRow("... with render_mode=None", us(plain), "us"),
            at_most("... the former over the latter", plain, made, 1.3),
        ]
    if "ppo" in timings:
        null, large = "null environment's frames/s", "the same, batches of 1024, 4 epochs"
        rows += [
            BenchmarkRow("MaskablePPO on the vector environment", rate("ppo"), "frames/s"),
            BenchmarkRow(f"... of a {null}", 100.0 * speed("ppo", "ppo_null"), "%", 90.0),
            BenchmarkRow(f"... {large}", 100.0 * speed("ppo_large_batches", "ppo_large_batches_null"), "%"),
        ]
    for tenants in SCENARIOS:
        for what, network, scheduler in POLICIES:
            alone, whole = us(f"{network}_{tenants}"), us(f"{scheduler}_{tenants}")
            rows += [
                BenchmarkRow(f"learned policy ({what}), {tenants} tenants", alone, "us", DECISION_US, at_least=False),
                BenchmarkRow("... from view to command", whole, "us", DECISION_US, at_least=False),
            ]
        if f"torch_{tenants}" in timings:
            rows.append(
                BenchmarkRow("... in torch over compiled", speed(f"network_{tenants}", f"torch_{tenants}"), "x")
            )
    return [
        *rows,
        BenchmarkRow("kernel of 10^3 blocks alone", us("kernel_alone"), "us"),
        at_most("... of 10^6 blocks", "kernel_alone", "kernel_alone_million", 3.0),
        BenchmarkRow("kernels of two tenants, 10^3 blocks each", us("two_tenants"), "us"),
        at_most("... 10^6 blocks each", "two_tenants", "two_tenants_million", 3.0),
        at_most("... 1,320 SMs and 10^4 blocks", "two_tenants", "sms_1320", 1.5),
        at_most("64 tenants over one, kernels of 64 blocks", "small_kernel", "small_kernels_64_tenants", 64.0),
        at_most("64 tenants over one, kernels of 10^3 blocks", "kernel_alone", "tenants_64", 64.0),
        BenchmarkRow("GPT-3's pair of products (1,024 tokens) by rows, 2 threads", rate("pairs_row"), "pairs/s", 2e3),
        BenchmarkRow("... by tiles", rate("pairs_tile"), "pairs/s", 5e2),
        BenchmarkRow("periods of four CPU cores beside a GPU, 2 threads", rate("periods"), "periods/s", 1e4),
        *(row for game in _benchmarks() for row in game.rows(rate, speed)),
        BenchmarkRow("first use, compilation included", seconds(timings["first_use"][0]), "s", 40.0, at_least=False),
        BenchmarkRow("every later start", seconds(timings["first_use_cached"][0]), "s"),
    ]


def results_dict(timings: Timings, sizes: BenchmarkSizes) -> dict[str, Any]:
    """Everything as plain values: what was measured on what, raw timings, and the figures."""
    basis = basis_of(timings)
    by_wall, by_cpu = rows_of(timings, "wall"), rows_of(timings, "cpu")
    decisive = by_wall if basis == "wall" else by_cpu
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "machine": machine(),
        "sizes": asdict(sizes),
        "basis": basis,
        "rows": [
            {**asdict(row), "holds": row.holds, "wall": wall.value, "cpu": cpu.value}
            for row, wall, cpu in zip(decisive, by_wall, by_cpu, strict=True)
        ],
        "timings": {name: [asdict(t) for t in turns] for name, turns in timings.items()},
    }


def table(data: dict[str, Any]) -> Table:
    """The figures of :func:`results_dict`."""
    rows = []
    for row in data["rows"]:
        target = "" if row["target"] is None else f"{'≥' if row['at_least'] else '≤'} {_shown(row['target'])}"
        aim = "" if row["aim"] is None else f" (aim {_shown(row['aim'])})"
        figures = (_shown(row[basis], row["unit"]) for basis in ("wall", "cpu"))
        rows.append((row["what"], *figures, target + aim, {True: "holds", False: "misses", None: ""}[row["holds"]]))
    heads = ("figure", "by wall time", "by processor time", "target", "")
    return Table("gpusched lab bench", heads, rows, note=BASES[data["basis"]])


def markdown(data: dict[str, Any]) -> str:
    """The figures as a page of the documentation."""
    return page("performance.md.j2", data=data, basis=BASES[data["basis"]], table=table(data))


def _shown(value: float, unit: str = "") -> str:
    """A number with three digits at least, and its unit."""
    number = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{number} {unit.replace('us', 'µs')}".strip()
