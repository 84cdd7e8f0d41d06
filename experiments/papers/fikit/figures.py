"""What the runs come to: speed-ups of pairs, and the claims of the paper judged by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusched_env.display.frame import frame, unstacked
from gpusched_env.display.words import counted
from gpusched_env.experiments.lib import verdicts
from gpusched_env.experiments.lib.criteria import Criterion
from gpusched_env.experiments.lib.recorded import RECORDED_ON, TimeSliced, recorded_turns
from gpusched_env.experiments.lib.verdicts import as_row, verdict_of
from gpusched_env.experiments.papers.fikit import runs
from gpusched_env.experiments.papers.fikit.pairs import FEATURES, MOST_ABOVE, SPEEDUP, distribution, drivers, outsiders
from gpusched_env.experiments.papers.fikit.runs import (
    ALONE,
    CASES,
    COST_US,
    DEFAULT,
    ENDS,
    FIKIT,
    GPU,
    MPS,
    NETWORKS,
    NO_SCHEDULER,
    SET_APART,
    SETTINGS,
    SHARED_NOW_AND_THEN,
    FikitRun,
    SharingMode,
    all_cells,
    now_and_then,
)
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.hardware.specs import load_gpu

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


LOW_RATIO = (0.86, 1.0)
"""Published range of low-priority completion times under preemptive sharing. Which is divided by which is not said."""
OVERHEAD = 0.05
"""Published bound of FIKIT's overhead."""
SPANNED = 0.5
"""Own criterion: so much of the published range, on a logarithmic scale, lies within the middle nine tenths."""
FILLED, DELAYED = 0.05, 1.05
"""Own criteria of gap filling: at least this share of the time is others' work, while the high-priority service takes
at most this much of its time alone (median pair)."""
DEAR_US = 10.0
"""Cost of an interception in the control of the overhead."""


class JudgedClaim(NamedTuple):
    """A claim in one run of a setting."""

    comes_out: bool
    figure: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim in a setting, with and without its mechanism."""

    claim: str
    published: str
    """What the paper says; empty where a criterion is our own."""
    criterion: str
    """The criterion by which the claim comes out."""
    setting: str
    services: int
    """Number of low-priority services."""
    ours: JudgedClaim
    control: str
    """What is switched off in the control."""
    without: JudgedClaim

    @property
    def holds(self) -> bool:
        """Whether it comes out, and fails in the control."""
        return self.ours.comes_out and not self.without.comes_out

    @property
    def verdict(self) -> str:
        """``shown``, ``not shown`` (it also comes out in the control) or ``off``."""
        return verdict_of(self.ours.comes_out, self.without.comes_out)

    def as_criterion(self) -> Criterion:
        services = f", {counted(self.services, 'service')}" if self.services else ""
        name = f"{self.claim}, {self.setting}{services}, without {self.control}"
        return Criterion(name, self.ours.figure, self.criterion, math.nan, self.holds)


def claims(figures: FikitFigures) -> list[Claimed]:
    """All claims of everything that was run, in the order of the page."""
    return [*_accelerated(figures), *_filled(figures), *_low_priority(figures), *_overhead(figures)]


def _accelerated(figures: FikitFigures) -> Iterator[Claimed]:
    """High-priority services, by setting and number of the others; the mechanism is the order of priorities."""
    kinds: dict[str, tuple[str, str, Callable[[DataFrame], JudgedClaim]]] = {
        f"more than half of the cases above {MOST_ABOVE}": (
            f"more than half above {MOST_ABOVE}",
            "of all pairs",
            _above,
        ),
        "speed-ups": (
            f"{SPEEDUP[0]} to {SPEEDUP[1]}",
            f"5 % and 95 % quantile of all pairs inside, and {SPANNED:.0%} of the range between them",
            _in_range,
        ),
    }
    for what, (published, criterion, judge) in kinds.items():
        for setting, lows in figures.by_co_runners:
            ours = judge(figures.speedups(setting, lows))
            without = judge(figures.speedups(setting, lows, setting.one_queue))
            yield Claimed(what, published, criterion, setting.text, lows, ours, "priorities: one queue", without)
            if setting == MPS and lows in ENDS:
                bare = judge(figures.speedups(setting, lows, NO_SCHEDULER))
                yield Claimed(what, published, criterion, setting.text, lows, ours, "FIKIT: MPS alone", bare)


def _above(pairs: DataFrame) -> JudgedClaim:
    share = distribution(pairs)["above"]
    return JudgedClaim(share > 0.5, f"{share:.0%}")


def _in_range(pairs: DataFrame) -> JudgedClaim:
    found = distribution(pairs)
    inside = found["p5"] >= SPEEDUP[0] and found["p95"] <= SPEEDUP[1]
    text = f"{found['p5']:.2f} to {found['p95']:.2f}, {found['spanned']:.0%} of the range"
    return JudgedClaim(inside and found["spanned"] >= SPANNED, text)


def _filled(figures: FikitFigures) -> Iterator[Claimed]:
    for setting in SETTINGS:
        pairs = figures.speedups(setting, 1)
        alone_us = figures.networks.alone_us[setting.gpu][pairs.high].to_numpy()
        with_it, without = (
            _gaps(pairs[f"low_share: {mode}"], pairs[mode] / alone_us)
            for mode in (setting.fikit, setting.nothing_filled)
        )
        criterion = f"at least {FILLED:.0%} of the time, high priority at most {DELAYED:g} times its time alone"
        control = "filling: threshold above every gap"
        yield Claimed("gaps are filled", "", criterion, setting.text, 1, with_it, control, without)


def _gaps(shares: Any, slowdowns: Any) -> JudgedClaim:
    share, slowdown = float(shares.mean()), float(slowdowns.median())
    return JudgedClaim(share >= FILLED and slowdown <= DELAYED, f"{share:.1%} of the time, {slowdown:.3f} times")


def _low_priority(figures: FikitFigures) -> Iterator[Claimed]:
    """Completion times of low-priority services beside intermittent requests; the mechanism is gap filling."""
    published = f"{LOW_RATIO[0]:g} to {LOW_RATIO[1]:g}"
    criterion = "5 % and 95 % quantile of all pairs inside, in either direction"
    for setting, loads in SHARED_NOW_AND_THEN.items():
        for load in loads:
            ours, without = (
                _ratio(figures.low_ratios(setting, load, mode)) for mode in (setting.fikit, setting.nothing_filled)
            )
            what, control = f"low-priority ratio, requests {load:.0%} of the time", "filling: threshold above every gap"
            yield Claimed(what, published, criterion, setting.text, 1, ours, control, without)


def _ratio(ratios: Any) -> JudgedClaim:
    """The ratio of default sharing over FIKIT, or the inverse: the direction that comes out, or the first."""
    found = [
        (direction, *np.percentile(of.dropna(), (5, 95)))
        for direction, of in (("default over FIKIT", ratios), ("FIKIT over default", 1.0 / ratios))
    ]
    direction, least, most = next((each for each in found if _within(*each[1:])), found[0])
    return JudgedClaim(_within(least, most), f"{direction}: {least:.2f} to {most:.2f}")


def _within(least: float, most: float) -> bool:
    # Published with two decimals.
    return bool(round(least, 2) >= LOW_RATIO[0] and round(most, 2) <= LOW_RATIO[1])


def _overhead(figures: FikitFigures) -> Iterator[Claimed]:
    """Largest of a service alone; that it can fail is all that its control says, as the cost is an assumption."""
    overheads = figures.overheads()
    for gpu in overheads.columns:
        ours, dear = (
            JudgedClaim(bool(overheads[gpu][us] < OVERHEAD), f"{overheads[gpu][us]:.1%}") for us in (COST_US, DEAR_US)
        )
        control = f"cheap interception: {DEAR_US:g} us a launch instead of {COST_US:g}"
        below = f"below {OVERHEAD:.0%}"
        yield Claimed("overhead", below, "largest of all services alone", gpu, 0, ours, control, dear)


TURNS, TURNS_US = "torchvision_time_slicing.jsonl", 60_000.0
"""What default sharing, the base of speed-ups, is held against: pairs that an H100 switched between, as processes. The
first network runs as many requests as take this long alone."""


class FikitFigures(Reproduction):
    """The figures of all runs of the paper."""

    @staticmethod
    def cells() -> Sequence[verdicts.Simulation]:
        turns = [TimeSliced(TURNS, pair, first_us=TURNS_US) for pair in recorded_turns(TURNS)]
        return [*all_cells(), *turns]

    @functools.cached_property
    def _by_itself(self) -> DataFrame:
        """Completion times (us) of services by themselves: a row a GPU and name, a column a mode."""
        own = self.to_frame(FikitRun)
        return unstacked(own[own.low.isna()].set_index(["gpu", "high", "mode"]).high_us)

    @functools.cached_property
    def networks(self) -> DataFrame:
        """Services by themselves, by GPU and name.

        ``alone_us``: job completion time. ``kernels``, ``waits``: launches and synchronisations of a job.
        ``gap_share``: share of the time in which no kernel runs. ``measuring``: completion time kernel by kernel over
        that alone. ``overhead``: relative growth of the completion time by FIKIT's interception.
        """
        own, alone_us = self._by_itself, self._by_itself[ALONE]
        jobs = frame([FikitRun(gpu, name, None, ALONE).job() for gpu, name in own.index]).set_index(own.index)
        return jobs.assign(
            alone_us=alone_us,
            gap_share=1.0 - jobs.busy_us / alone_us,
            waits_per_ms=1e3 * jobs.waits / alone_us,
            kernels_per_ms=1e3 * jobs.kernels / alone_us,
            measuring=own[runs.MEASURED] / alone_us,
            overhead=own[runs.FIKIT_ALONE] / alone_us - 1.0,
        )

    @functools.cached_property
    def pairs(self) -> DataFrame:
        """Two services that share a GPU, one of either priority, and how long they take together.

        The properties of :attr:`networks` as ``high_...`` and ``low_...``. ``fikit_us``: completion time of the
        high-priority service under FIKIT as the setting of the GPU has it; ``speedup``: that under default sharing over
        it. By mode, the run's outcome: as ``MODE`` the completion time of the high-priority service, as ``low_us:
        MODE`` and ``low_share: MODE`` what it says of the low-priority one.
        """
        shared = self.to_frame(FikitRun)
        shared = shared[shared.low.notna() & (shared.lows == 1)].set_index(["gpu", "high", "low", "mode"])
        lows = [unstacked(shared[name]).add_prefix(f"{name}: ") for name in ("low_us", "low_share")]
        found = unstacked(shared.high_us).join(lows).reset_index()
        for side in ("high", "low"):
            found = found.join(self.networks[[*FEATURES]].add_prefix(f"{side}_"), on=["gpu", side])
        fikit_us = found[FIKIT].copy()
        for setting in SETTINGS:
            fikit_us = fikit_us.where(found.gpu != setting.gpu, found[setting.fikit])
        return found.assign(fikit_us=fikit_us, speedup=found[DEFAULT] / fikit_us)

    @functools.cached_property
    def by_gpu(self) -> dict[str, DataFrame]:
        """Pairs, on the paper's stand-in first."""
        return dict(list(self.pairs.groupby("gpu", sort=False)))

    @functools.cached_property
    def shared(self) -> DataFrame:
        """Services that share a GPU without a pause: a row a GPU, number of low-priority services and pair; completion
        times (us) of the high-priority one by mode, and as ``low_share: MODE`` the others' work over the time."""
        runs = self.to_frame(FikitRun)
        used = [DEFAULT, NO_SCHEDULER, *(mode for setting in SETTINGS for mode in setting[1:])]
        runs = runs[runs.low.notna() & runs["mode"].isin(used)].set_index(["gpu", "lows", "high", "low", "mode"])
        times, shares = unstacked(runs.high_us), unstacked(runs.low_share).add_prefix("low_share: ")
        found = times.join(shares).reset_index()
        return found.assign(set_apart=found.high.isin(SET_APART) | found.low.isin(SET_APART))

    def speedups(self, setting: SharingMode, lows: int, mode: str | None = None) -> DataFrame:
        """All pairs of a setting with so many low-priority services: :attr:`shared` with ``speedup``, the completion
        time of the high-priority one under default sharing over that in ``mode`` (default: the setting's FIKIT)."""
        pairs = self.shared[(self.shared.gpu == setting.gpu) & (self.shared.lows == lows)].dropna(axis=1, how="all")
        return pairs.assign(speedup=pairs[DEFAULT] / pairs[mode or setting.fikit])

    @functools.cached_property
    def by_co_runners(self) -> dict[tuple[SharingMode, int], DataFrame]:
        """:meth:`speedups` by setting and number of low-priority services."""
        numbers = [int(lows) for lows in sorted(self.shared.lows.unique())]
        return {(setting, lows): self.speedups(setting, lows) for setting in SETTINGS for lows in numbers}

    def low_ratios(self, setting: SharingMode, load: float, mode: str) -> Any:
        """Low-priority completion times beside intermittent requests by pair: default sharing over ``mode``."""
        pairs = self.by_gpu[setting.gpu]
        default, found = (pairs[f"low_us: {now_and_then(of, load)}"] for of in (DEFAULT, mode))
        return (default / found).set_axis(pairs.high + ", " + pairs.low)

    def by_slice(self) -> dict[float, DataFrame]:
        """Judged pairs on the paper's stand-in with their speed-ups, by time slice (us)."""
        slices = {load_gpu(GPU).timing.slice_us: DEFAULT, **{us: mode for mode, us in runs.SLICES.items()}}
        pairs = self.by_gpu[GPU].dropna(subset=[*slices.values()])
        return {us: pairs.assign(speedup=pairs[slices[us]] / pairs[FIKIT]) for us in sorted(slices)}

    def overheads(self) -> DataFrame:
        """The largest relative growth of a completion time alone, by cost of an interception (us) and GPU."""
        own = self._by_itself.rename(columns={mode: us for us, mode in runs.INTERCEPTED.items()})
        growth = own.rename(columns={runs.FIKIT_ALONE: COST_US}).div(own[ALONE], axis=0) - 1.0
        return growth[[COST_US, *runs.INTERCEPTED]].groupby("gpu", sort=False).max().T

    def losses(self) -> DataFrame:
        """What wrong profiles cost, averaged over the pairs, relative to right ones.

        ``high``: completion time of the high-priority service. ``low``: work done in its gaps.
        """
        times, shares = self._tried([*CASES])
        relative = {"high": times.div(times[runs.RIGHT], axis=0), "low": shares.div(shares[runs.RIGHT], axis=0)}
        return frame({name: of.mean() for name, of in relative.items()}).dropna().rename_axis("case").reset_index()

    def thresholds(self) -> DataFrame:
        """What a threshold does, averaged over the pairs; values under MPS and as processes.

        ``high``: completion time of the high-priority service over that alone. ``low``: share of the time of the work
        in its gaps.
        """
        times, shares = (of.mean() for of in self._tried([*runs.SWEEP.values()], relative_to="high_alone_us"))
        swept = [(us, [runs.SWEEP[contexts, us] for contexts in runs.CONTEXTS]) for us in runs.EPSILONS_US]
        rows = [{"epsilon_us": us, "high": [*times[modes]], "low": [*shares[modes]]} for us, modes in swept]
        return frame(rows if times.notna().all() else [])

    def _tried(self, modes: list[str], relative_to: str = "") -> tuple[DataFrame, DataFrame]:
        """High-priority times and low-priority work of pairs on the recordings' GPU that were tried in the modes."""
        pairs = self.by_gpu[RECORDED_ON]
        times = pairs.reindex(columns=modes)
        shares = pairs.filter(like="low_share: ").rename(columns=lambda name: name.removeprefix("low_share: "))
        return times.div(pairs[relative_to], axis=0) if relative_to else times, shares.reindex(columns=modes)

    def turns(self) -> list[dict[str, Any]]:
        """Recorded pairs: slowdowns are times of a request over that alone, of the first and second network."""
        names = {workload: name for name, workload in NETWORKS.items()}
        rows = []
        for cell, turns in self.of(TimeSliced).items():
            simulated, recorded = zip(*turns.slowdowns, strict=True)
            row = {"networks": [names[network] for network in cell.networks], "recorded": recorded}
            rows.append(row | {"simulated": simulated, "errors": [s / r - 1.0 for s, r in turns.slowdowns]})
        return rows

    @functools.cached_property
    def claimed(self) -> list[Claimed]:
        """What the paper claims, with controls."""
        return claims(self)

    def checks(self) -> list[Claimed]:
        return self.claimed

    def summary(self) -> str:
        medians = [distribution(pairs)["median"] for (of, _), pairs in self.by_co_runners.items() if of == SETTINGS[0]]
        return (
            f"{self.tally()}, and not without their mechanism; median speed-ups of all pairs "
            f"{', '.join(f'{median:.2f}' for median in medians)} with 1, 2, 3 low-priority services"
        )

    def data(self) -> dict[str, Any]:
        slices = {f"{us:g}": of for us, of in self.by_slice().items() if us in runs.SLICES.values()}
        gpus = {}
        for gpu, pairs in self.by_gpu.items():
            slowdowns = pairs[["high", "low", "speedup"]].assign(
                slowdown_under_fikit=pairs.fikit_us / pairs.high_alone_us
            )
            gpus[gpu] = {
                "distribution": distribution(pairs),
                "drivers": drivers(pairs).to_dict("records"),
                "outside": outsiders(pairs).to_dict("records"),
                "pairs": slowdowns.to_dict("records"),
            }
        return {
            "claims": [as_row(claim) for claim in self.claimed],
            "by_co_runners": [
                {"setting": setting.text, "services": lows, **distribution(of), "each": of.to_dict("records")}
                for (setting, lows), of in self.by_co_runners.items()
            ],
            "gpus": gpus,
            "by_slice_us": {us: of[["high", "low", "speedup"]].to_dict("records") for us, of in slices.items()},
            "wrong_profiles": self.losses().to_dict("records"),
            "largest_overhead_by_cost_us": self.overheads().rename("{:g}".format).to_dict(),
            "thresholds": self.thresholds().to_dict("records"),
            "recorded_time_slicing": self.turns(),
            "runs": self.to_frame(FikitRun).to_dict("records"),
        }
