"""What the runs come to: speed-ups of pairs, and what they depend on."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpusched_env.display.frame import frame, unstacked
from gpusched_env.experiments.lib import judged
from gpusched_env.experiments.lib.recorded import RECORDED_ON, recorded_turns
from gpusched_env.experiments.lib.time_sliced import TimeSliced
from gpusched_env.experiments.lib.verdicts import record
from gpusched_env.experiments.papers.fikit import modes
from gpusched_env.experiments.papers.fikit.claims import Claimed, claims
from gpusched_env.experiments.papers.fikit.modes import (
    ALONE,
    CASES,
    COST_US,
    DEFAULT,
    FIKIT,
    GPU,
    NO_SCHEDULER,
    SETTINGS,
    Setting,
    now_and_then,
)
from gpusched_env.experiments.papers.fikit.pairs import FEATURES, distribution, drivers, outsiders
from gpusched_env.experiments.papers.fikit.runs import NETWORKS, SET_APART, FikitRun, all_cells
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.hardware.specs import load_gpu

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

TURNS, TURNS_US = "torchvision_time_slicing.jsonl", 60_000.0
"""What default sharing, the base of speed-ups, is held against: pairs that an H100 switched between, as processes. The
first network runs as many requests as take this long alone."""


class Figures(Reproduction):
    """Of all runs of the paper."""

    @staticmethod
    def cells() -> Sequence[judged.Simulation]:
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
            measuring=own[modes.MEASURED] / alone_us,
            overhead=own[modes.FIKIT_ALONE] / alone_us - 1.0,
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

    def speedups(self, setting: Setting, lows: int, mode: str | None = None) -> DataFrame:
        """All pairs of a setting with so many low-priority services: :attr:`shared` with ``speedup``, the completion
        time of the high-priority one under default sharing over that in ``mode`` (default: the setting's FIKIT)."""
        pairs = self.shared[(self.shared.gpu == setting.gpu) & (self.shared.lows == lows)].dropna(axis=1, how="all")
        return pairs.assign(speedup=pairs[DEFAULT] / pairs[mode or setting.fikit])

    @functools.cached_property
    def by_co_runners(self) -> dict[tuple[Setting, int], DataFrame]:
        """:meth:`speedups` by setting and number of low-priority services."""
        numbers = [int(lows) for lows in sorted(self.shared.lows.unique())]
        return {(setting, lows): self.speedups(setting, lows) for setting in SETTINGS for lows in numbers}

    def low_ratios(self, setting: Setting, load: float, mode: str) -> Any:
        """Low-priority completion times beside intermittent requests by pair: default sharing over ``mode``."""
        pairs = self.by_gpu[setting.gpu]
        default, found = (pairs[f"low_us: {now_and_then(of, load)}"] for of in (DEFAULT, mode))
        return (default / found).set_axis(pairs.high + ", " + pairs.low)

    def by_slice(self) -> dict[float, DataFrame]:
        """Judged pairs on the paper's stand-in with their speed-ups, by time slice (us)."""
        slices = {load_gpu(GPU).timing.slice_us: DEFAULT, **{us: mode for mode, us in modes.SLICES.items()}}
        pairs = self.by_gpu[GPU].dropna(subset=[*slices.values()])
        return {us: pairs.assign(speedup=pairs[slices[us]] / pairs[FIKIT]) for us in sorted(slices)}

    def overheads(self) -> DataFrame:
        """The largest relative growth of a completion time alone, by cost of an interception (us) and GPU."""
        own = self._by_itself.rename(columns={mode: us for us, mode in modes.INTERCEPTED.items()})
        growth = own.rename(columns={modes.FIKIT_ALONE: COST_US}).div(own[ALONE], axis=0) - 1.0
        return growth[[COST_US, *modes.INTERCEPTED]].groupby("gpu", sort=False).max().T

    def losses(self) -> DataFrame:
        """What wrong profiles cost, averaged over the pairs, relative to right ones.

        ``high``: completion time of the high-priority service. ``low``: work done in its gaps.
        """
        times, shares = self._tried([*CASES])
        relative = {"high": times.div(times[modes.RIGHT], axis=0), "low": shares.div(shares[modes.RIGHT], axis=0)}
        return frame({name: of.mean() for name, of in relative.items()}).dropna().rename_axis("case").reset_index()

    def thresholds(self) -> DataFrame:
        """What a threshold does, averaged over the pairs; values under MPS and as processes.

        ``high``: completion time of the high-priority service over that alone. ``low``: share of the time of the work
        in its gaps.
        """
        times, shares = (of.mean() for of in self._tried([*modes.SWEEP.values()], relative_to="high_alone_us"))
        swept = [(us, [modes.SWEEP[contexts, us] for contexts in modes.CONTEXTS]) for us in modes.EPSILONS_US]
        rows = [{"epsilon_us": us, "high": [*times[modes]], "low": [*shares[modes]]} for us, modes in swept]
        return frame(rows if times.notna().all() else [])

    def _tried(self, modes: list[str], relative_to: str = "") -> tuple[DataFrame, DataFrame]:
        """Of pairs on the recordings' GPU that were tried in the modes: high-priority times, low-priority work."""
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
        shown = sum(claim.holds for claim in self.claimed)
        medians = [distribution(pairs)["median"] for (of, _), pairs in self.by_co_runners.items() if of == SETTINGS[0]]
        return (
            f"{shown} of {len(self.claimed)} claims come out and fail without their mechanism; median speed-ups of all "
            f"pairs {', '.join(f'{median:.2f}' for median in medians)} with 1, 2, 3 low-priority services"
        )

    def data(self) -> dict[str, Any]:
        slices = {f"{us:g}": of for us, of in self.by_slice().items() if us in modes.SLICES.values()}
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
            "claims": [record(claim) for claim in self.claimed],
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
