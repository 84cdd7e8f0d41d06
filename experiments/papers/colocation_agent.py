"""What an agent could gain at the knobs of training beside a service.

`gpusched/Colocation-v0` lets an agent set how long training sleeps and which SMs it has, every 100 ms. Before one is
trained it is asked here how much there is to gain. Each way of setting the knobs is searched on the scenario's training
variants, each with about as many settings, and judged on its held-out variants.

* *Fixed*: a pause and a share that stand.
* *GPUColo*, *GSLICE*: the published controllers, their options searched.
* *Seen load*: one pause while the service was calm in the last period, another while it was busy. It is a rule that
  an agent could learn: observations tell the load.
* *Seen latency*: training has a quarter of the SMs less after each period in which batches took too long on average.
* *Foresight*: of each episode the cheapest of a grid, chosen afterwards: shares that stand, and the two pauses by the
  load of the period that comes. No scheduler knows either.

Ways without foresight are judged on 18 episodes, foresight on the first two of each variant.

What foresight saves over the best rule says about how much an agent can gain. It is no strict bound, as there are other
ways to set the knobs than those of the grid.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.baselines.colocated import DONE, Colocated
from gpusched_env.baselines.gpucolo import GpuColo
from gpusched_env.baselines.gslice import Gslice
from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.display.table import Table
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.statistics import Floats, Interval, mean_interval
from gpusched_env.experiments.lib.verdicts import Simulation, as_row, table_of
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.variants import scenario_variants
from gpusched_env.scenarios.workload_sets import SetName
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.reads import TRUTH, Reads
from gpusched_env.scheduling.view import TenantColumn, View

WAITING = int(TenantColumn.JOBS_WAITING)
BUSY = 0.25
"""Share of the time, services alone, above which it is busy: halfway between the calm and the busy times."""


QUARTER = 25.0
"""Percent of the SMs."""


class SeenLoad(Colocated):
    """Training sleeps as one number says while services were calm in the last period, and as another while busy."""

    def __init__(self, calm: float, busy: float, share: float, period_us: float) -> None:
        """
        Args:
            calm: of the pause after each iteration, in times of an iteration alone (>= 0).
            busy: likewise.
            share: of training, percent of the SMs (above 0 to 100).
            period_us: until the pause is set anew.
        """
        self._pauses, self._share, self.period_us = (calm, busy), share, period_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Begin an episode in which nothing has arrived."""
        self._alone_us = [tenant.alone_us for tenant in knowledge.tenants]
        self._arrived: dict[int, float] = {}
        self._before: dict[int, float] = {}
        super().reset(knowledge, rng)

    def begin(self) -> None:
        """Begin as if it were calm."""
        self.training_share = self._share
        self._set(busy=False)

    def decide(self, view: View) -> Command:
        """Note how many jobs have arrived."""
        tenants = view.tenants.array
        self._arrived = {row: float(tenants[row, DONE] + tenants[row, WAITING]) for row in self.inference}
        return super().decide(view)

    def control(self, batch_us: float) -> None:
        """Set the pause by the load."""
        self._set(busy=self.load() > BUSY)

    def load(self) -> float:
        """Jobs of services in the last period, times their time alone, over the period."""
        came = {row: count - self._before.get(row, 0.0) for row, count in self._arrived.items()}
        self._before = self._arrived
        return sum(count * self._alone_us[row] for row, count in came.items()) / self.period_us

    def _set(self, *, busy: bool) -> None:
        alone_us = max(self._alone_us[row] for row in self.training) if self.training else 0.0
        self.pause_us = self._pauses[busy] * alone_us


class KnownLoad(SeenLoad):
    """Training that sleeps by the load of the coming period: a reference, and no scheduler that there could be."""

    reads: Reads = (*SeenLoad.reads, TRUTH)
    clairvoyant = True

    def see(self, truth: Problem, seed: int) -> None:
        """Find out when jobs arrive; that depends on no scheduler."""
        # It brings in Numba.
        from gpusched_env.devices.compiled.device import CompiledDevice

        jobs = run_episode(OpenLoop(3600.0), truth, CompiledDevice(), seed).timeline.jobs.dict()
        alone_us = np.array([program.alone_us for program in truth.programs])
        mine = np.isin(jobs["tenant"], [row for row, each in enumerate(truth.programs) if each.tenant.slo_us])
        periods = (jobs["arrived_us"][mine] // self.period_us).astype(int)
        # Of the last period, in which nobody is asked any more, there is one more.
        self._coming = np.bincount(periods, alone_us[jobs["tenant"][mine].astype(int)]) / self.period_us

    def begin(self) -> None:
        """Begin with the pause of the first period's load."""
        self._period = 0
        super().begin()
        self._set(busy=self.load() > BUSY)

    def load(self) -> float:
        """The load of the period that begins."""
        coming = self._coming[self._period] if self._period < len(self._coming) else 0.0
        self._period += 1
        return float(coming)


class SeenLatency(Colocated):
    """Training has a quarter of the SMs less after each period in which batches took too long, and does not sleep."""

    def __init__(self, share: float, high: float, period_us: float) -> None:
        """
        Args:
            share: of training in the beginning, percent of the SMs (25 to 100).
            high: mean turnaround of a period above which it is too long, in times of the objective.
            period_us: until that is looked at again.
        """
        self._share, self._high, self.period_us = share, high, period_us

    def begin(self) -> None:
        """Begin with the first share."""
        self.training_share = self._share

    def control(self, batch_us: float) -> None:
        """A smaller share after a late period; never a larger one, as each change takes a restart."""
        if not math.isnan(batch_us) and batch_us > self._high * self.goal_us:
            self.training_share = max(QUARTER, self.training_share - QUARTER)


SCENARIO: Final = "ServingColocated"
PERIOD_US: Final = load_scenario(SCENARIO).interval_us
PERIOD_S: Final = PERIOD_US / 1e6
TRAINED: Final = (0, 1, 2, 3)
"""Training variants that settings are searched on."""
SEEDS: Final = tuple(range(1000, 1006))
"""Seeds of each held-out variant."""
FORESEEN_SEEDS: Final = SEEDS[:2]
"""Seeds that foresight plays, which takes many episodes for one."""
SEARCHED: Final = (500,)
"""Seeds of each training variant."""
FIXED, GPUCOLO, GSLICE, SEEN, KNOWN = "fixed", "gpucolo", "gslice", "seen load", "known load"
LATENCY: Final = "seen latency"
FORESIGHT: Final = "foresight"
MAKERS: Final = {
    FIXED: OpenLoop,
    GPUCOLO: GpuColo,
    GSLICE: Gslice,
    SEEN: SeenLoad,
    LATENCY: SeenLatency,
    KNOWN: KnownLoad,
}
TWO_PAUSES: Final = [
    {"calm": calm, "busy": busy, "share": share, "period_us": PERIOD_US}
    for share in (100.0, 75.0)
    for calm, busy in ((0.0, 1.0), (0.0, 4.0), (0.0, 16.0), (0.25, 4.0))
]
AWAKE: Final = [{"calm": 0.0, "busy": 0.0, "share": share, "period_us": PERIOD_US} for share in (100.0, 75.0)]
"""Settings of the same rule without a pause."""
SETTINGS: Final[dict[str, list[dict[str, float]]]] = {
    FIXED: [
        {"pause_s": pause_s, "training_share": share}
        for share in (100.0, 75.0, 50.0)
        for pause_s in (0.0, 0.0025, 0.005)
    ],
    GPUCOLO: [
        {"slope_ms": slope, "period_s": period_s, "first_share": share, "outer": 0}
        for slope in (-0.5, -2.0)
        for period_s in (PERIOD_S / 2.0, PERIOD_S)
        for share in (100.0, 75.0)
    ],
    GSLICE: [{"period_s": period_s, "first_share": share} for period_s in (0.5, 2.0) for share in (25.0, 50.0)],
    SEEN: [*TWO_PAUSES[:2], *TWO_PAUSES[4:6], *AWAKE],
    LATENCY: [
        {"share": share, "high": high, "period_us": PERIOD_US}
        for share in (100.0, 75.0)
        for high in (0.6, 0.8, 1.1, 1.6, 2.2)
    ],
}
"""What is searched of each way."""
GRID: Final[dict[str, list[dict[str, float]]]] = {**SETTINGS, KNOWN: TWO_PAUSES}
FORESEEN: Final = [(KNOWN, 0), (KNOWN, 1), (KNOWN, 4), (KNOWN, 5), (FIXED, 0), (FIXED, 3), (FIXED, 6)]
"""Ways and settings that foresight chooses from: pauses of one and four iterations while busy, and none."""


@dataclass(frozen=True, slots=True)
class ColocationEpisode:
    """An episode of a setting."""

    way: str
    setting: int
    variants: SetName
    variant: int
    seed: int

    def run(self, device: str) -> float:
        """The cost of the episode."""
        scheduler: Any = MAKERS[self.way]
        made: Scheduler = scheduler(**GRID[self.way][self.setting])
        return float(episode_metrics(play(made, problem(self.variants, self.variant), self.seed, device=device)).cost)


@functools.cache
def problem(variants: SetName, variant: int) -> Problem:
    """A variant of the scenario."""
    return build_problem(scenario_variants(load_scenario(SCENARIO), variants)[variant])


def searching() -> list[ColocationEpisode]:
    """Every setting on the training variants."""
    return [
        ColocationEpisode(way, setting, "train", variant, seed)
        for way, settings in SETTINGS.items()
        for setting in range(len(settings))
        for variant in TRAINED
        for seed in SEARCHED
    ]


def judging(settings: Iterable[tuple[str, int]], seeds: Sequence[int] = SEEDS) -> list[ColocationEpisode]:
    """Settings, each a way and a number, on the held-out variants."""
    count = len(scenario_variants(load_scenario(SCENARIO), "held_out"))
    return [
        ColocationEpisode(way, setting, "held_out", variant, seed)
        for way, setting in settings
        for variant in range(count)
        for seed in seeds
    ]


def best_settings(costs: Mapping[ColocationEpisode, float]) -> dict[str, int]:
    """The setting of each way whose costs are least, each relative to the mean of all on that episode."""
    of: dict[Any, list[float]] = {(each.variants, each.variant, each.seed): [] for each in costs}
    for each, cost in costs.items():
        of[each.variants, each.variant, each.seed].append(cost)
    found: dict[tuple[str, int], list[float]] = {}
    for each, cost in costs.items():
        relative = cost / float(np.mean(of[each.variants, each.variant, each.seed]))
        found.setdefault((each.way, each.setting), []).append(relative)
    return {
        way: min(range(len(settings)), key=lambda setting: float(np.mean(found[way, setting])))
        for way, settings in SETTINGS.items()
    }


class Paper(Reproduction):
    """How much there is to gain."""

    name = "colocation-agent"
    title = "What an agent of co-location could gain"
    legend = "*Gain*: cost saved over tuned GPUColo, mean over pairs of episodes with a 95 % interval (bootstrap)."

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return searching()

    @classmethod
    def further(cls, found: Mapping[Any, Any]) -> Sequence[Simulation]:
        """The settings that are best, on the held-out variants."""
        return list(dict.fromkeys([*judging(best_settings(found).items()), *judging(FORESEEN, FORESEEN_SEEDS)]))

    @functools.cached_property
    def chosen(self) -> dict[str, int]:
        """Setting of each way."""
        return best_settings({each: cost for each, cost in self.runs.items() if each.variants == "train"})

    def costs(self, way: str, variants: Iterable[int] | None = None, seeds: Sequence[int] | None = None) -> Floats:
        """Costs of the held-out episodes, in order of variant and seed; ``seeds``: those that the way has played."""
        settings, played = ([(way, self.chosen[way])], SEEDS) if way != FORESIGHT else (FORESEEN, FORESEEN_SEEDS)
        tried = [
            [
                self.runs[each]
                for each in judging([setting], seeds or played)
                if variants is None or each.variant in variants
            ]
            for setting in settings
        ]
        least: Floats = np.min(np.array(tried), axis=0)
        return least

    def gain(self, way: str, over: str = GPUCOLO) -> Interval:
        """Cost saved over another way in an episode, of one: mean and interval."""
        seeds = FORESEEN_SEEDS if FORESIGHT in (way, over) else SEEDS
        return mean_interval((1.0 - self.costs(way, seeds=seeds) / self.costs(over, seeds=seeds)).tolist())

    def summary(self) -> str:
        known, seen, late = (self.gain(way).text("{:+.0%}") for way in (FORESIGHT, SEEN, LATENCY))
        return (
            f"a rule by the latency of the last period saves {late} of the cost of tuned GPUColo, one by its load "
            f"{seen}, foresight {known}"
        )

    def outcome(self) -> str:
        best = min(SETTINGS, key=lambda way: float(self.costs(way).mean()))
        rule = SETTINGS[SEEN][self.chosen[SEEN]]
        alike = "with the same pause" if rule["calm"] == rule["busy"] else "with two pauses"
        return (
            f"Of all ways without foresight, {best} has the least mean cost on held-out variants; gains weigh cheap "
            f"episodes as much as dear ones. Foresight saves "
            f"{self.gain(FORESIGHT, best).text('{:+.0%}')} beside it. The rule by latency differs by "
            f"{self.gain(LATENCY, FIXED).text('{:+.0%}')} from the best share that stands. The rule of the seen load "
            f"came out {alike} in calm and busy times. No agent is shipped: the policy for these knobs "
            "([knobs](policies.md#knobs)) has not been trained long enough to be judged."
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row a way."""
        found = []
        for way in (*SETTINGS, FORESIGHT):
            chosen = SETTINGS[way][self.chosen[way]] if way in SETTINGS else {}
            said = ", ".join(f"{name} {value:g}" for name, value in chosen.items()) or "of each episode"
            count = len(SETTINGS.get(way, FORESEEN))
            each = {"way": way, "setting": said, "settings": count, "cost": float(self.costs(way).mean())}
            found.append({**each, "gain": self.gain(way).text("{:+.1%}")})
        return found

    def tables(self) -> list[Table]:
        return [
            table_of(
                "Held-out variants",
                self.rows(),
                "way = {way} | best setting = {setting} | searched = {settings} | cost = {cost:.0f} | gain = {gain}",
            )
        ]

    def details(self) -> list[Table]:
        variants = sorted({each.variant for each in self.runs if each.variants == "held_out"})
        rows = [
            {"variant": f"{SCENARIO}-held_out-{variant}", "way": way, "cost": float(self.costs(way, [variant]).mean())}
            for variant in variants
            for way in (*SETTINGS, FORESIGHT)
        ]
        return [table_of("By variant", rows, "variant = {variant} | way = {way} | cost = {cost:.0f}")]

    def data(self) -> dict[str, Any]:
        runs = [{**as_row(each), "cost": cost} for each, cost in self.runs.items()]
        return {"ways": self.rows(), "runs": runs}
