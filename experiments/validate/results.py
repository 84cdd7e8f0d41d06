"""What a validation found: figures as plain data and as tables, and whether they hold."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env import __version__
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.graph_pairs import GraphPair
from gpusched_env.experiments.lib.judged import JudgedResult
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.verdicts import record, table_of, table_of_numbers
from gpusched_env.experiments.validate.recordings import KERNEL_SETS, MODEL_PAIRS, Recordings
from gpusched_env.experiments.validate.scoring import halves, score, spread, worst_launches
from gpusched_env.hardware.specs import GpuSpec

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

CALIBRATED_ON = "h100-sxm"
"""The GPU whose recordings the constants were read off."""
TRANSFER = 1.3
"""Errors on other GPUs may be this many times as large."""
LIMITS: dict[str, dict[str, float]] = {
    "pairs": {"median": 0.012, "p90": 0.07, "makespan_median": 0.012},
    "mixes": {"median": 0.022, "p90": 0.11, "makespan_median": 0.025},
    "sequences": {"median": 0.03, "p90": 0.09, "makespan_median": 0.025},
    MODEL_PAIRS: {"median": 0.07, "p90": 0.15},
}
"""Largest errors that hold: of reproducible end times, of makespans; of slowdowns for pairs of networks."""
NAMES = {**{name: name for name in KERNEL_SETS}, MODEL_PAIRS: "pairs of networks"}
EVERY_PAIR = "Every pair of networks"
ALL_ON = "everything on"
EVERY = {"sequences": 5}
"""Of these sets an ablation runs only every n-th scenario."""
ABLATION_NOTE = """\
The same reproducible ends and makespans with one mechanism switched off at a time; {sampled}pairs of networks are not \
run. *Carve-out*: every SM has all of its shared memory at all times. *Scale*: kernels take what their work says, not \
their solo duration. *Timer*: the kernel that releases the streams holds an SM.
"""
EVERY_PAIR_NOTE = """\
Slowdowns, predicted and measured; {faster} of {count} recorded ones are below 1, which no law of sharing gives.
"""


@dataclass(frozen=True, slots=True)
class Limited:
    """An error that has a limit."""

    set: str
    figure: str
    error: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.error <= self.limit


class Validation(JudgedResult):
    """Predictions of a folder's recordings, and their errors; errors are relative (0.01: 1 %)."""

    def __init__(
        self,
        gpu: GpuSpec,
        recordings: Recordings,
        launches: DataFrame,
        model_pairs: Sequence[tuple[GraphPair, tuple[float, float]]] = (),
        ablation: Mapping[str, DataFrame] | None = None,
    ) -> None:
        """Keep them.

        Args:
            gpu: of the recordings.
            recordings: what was predicted.
            launches: of all sets, see :func:`~gpusched_env.experiments.validate.scoring.launches`.
            model_pairs: pairs of networks with the predicted slowdowns of both.
            ablation: launches by what is off; none if not asked for.
        """
        self.name = f"validation on {gpu.name}"
        self.gpu, self.recordings, self.launches, self.model_pairs = gpu, recordings, launches, model_pairs
        self.ablation = dict(ablation or {})

    @functools.cached_property
    def sets(self) -> dict[str, DataFrame]:
        """The launches of each set that the folder has."""
        return dict(list(self.launches.groupby("set", sort=False)))

    @functools.cached_property
    def scores(self) -> dict[str, dict[str, Any]]:
        """The figures of each set; ``halves`` are scenarios of even and odd number."""
        return {
            name: {**(score(of) or {}), "scenarios": of.number.nunique(), "halves": halves(of)}
            for name, of in self.sets.items()
        }

    @functools.cached_property
    def networks(self) -> dict[str, Any]:
        """The figures of the pairs of networks: errors of both sides' slowdowns; empty if the folder has none."""
        if self.recordings.model_pairs is None:
            return {}
        each = []
        for pair, predicted in self.model_pairs:
            row: dict[str, Any] = {"mode": pair.mode, "fg": pair.fg, "bg": pair.bg}
            for side, p, m in zip(("foreground", "background"), predicted, pair.recorded, strict=True):
                row[side] = {"predicted": p, "measured": m, "error": p / m - 1.0}
            each.append(row)
        errors = {side: np.array([row[side]["error"] for row in each]) for side in ("foreground", "background")}
        figures = {
            "slowdown_error": spread(np.concatenate([*errors.values()])),
            **{f"{side}_error": spread(of) for side, of in errors.items()},
            "each": each,
        }
        return {"n": len(each), **(figures if each else {}), "skipped": len(self.recordings.skipped)}

    @functools.cached_property
    def without(self) -> dict[str, dict[str, dict[str, float | None]]]:
        """Errors of an ablation by what is off and set; those of the complete simulator on the same scenarios first."""
        if not self.ablation:
            return {}
        sampled = self.launches[self.launches.number % self.launches["set"].map(lambda name: EVERY.get(name, 1)) == 0]
        return {
            label: {name: brief(score(of) or {}) for name, of in rows.groupby("set", sort=False)}
            for label, rows in {ALL_ON: sampled, **self.ablation}.items()
        }

    def checks(self) -> list[Limited]:
        """The errors that have limits, of the sets that are there."""
        factor = 1.0 if self.gpu.name == CALIBRATED_ON else TRANSFER
        errors = {MODEL_PAIRS: dict(self.networks.get("slowdown_error") or {})}
        for name, figures in self.scores.items():
            errors[name] = {figure: error for figure, error in brief(figures).items() if error is not None}
        return [
            Limited(name, figure.replace("_", " "), errors[name][figure], limit * factor)
            for name, largest in LIMITS.items()
            for figure, limit in largest.items()
            if figure in errors.get(name, {})
        ]

    def summary(self) -> str:
        """How many figures hold, and the one nearest to its limit or furthest beyond it."""
        checks = self.checks()
        if not checks:
            return "nothing to compare"
        worst = max(checks, key=lambda check: check.error / check.limit)
        return (
            f"{sum(check.holds for check in checks)} of {len(checks)} errors within limits; "
            f"worst {worst.set}, {worst.figure}: {worst.error:.2%} (limit {worst.limit:.2%})"
        )

    @property
    def holds(self) -> bool:
        """Whether there is something to compare, and all of it within its limits."""
        return bool(self.checks()) and super().holds

    def as_dict(self) -> dict[str, Any]:
        every = {name: EVERY.get(name, 1) for name in self.sets}
        worst = worst_launches(self.launches)[["set", "scenario", "launch", "error"]]
        return {
            **{"gpu": self.gpu.name, "version": __version__, "folder": str(self.recordings.folder)},
            **self.scores,
            **({MODEL_PAIRS: self.networks} if self.networks else {}),
            **({"ablation": {"every": every, "without": self.without}} if self.without else {}),
            "worst": worst.to_dict("records"),
            "limits": [record(check) for check in self.checks()],
            "holds": self.holds,
        }

    def markdown(self) -> str:
        return page("validation.md.j2", validation=self, transfer=TRANSFER, calibrated=CALIBRATED_ON)

    def printed(self) -> list[Table]:
        return [table for table in self.tables() if table.title != EVERY_PAIR]

    def tables(self) -> list[Table]:
        limits = "set = {name} | figure = {what} | error = {error:.2%} | limit = {limit:.2%} | = {verdict}"
        checks = [record(c) | {"name": NAMES[c.set], "what": _limited(c)} for c in self.checks()]
        ends, makespans, split = [], [], []
        for name, figures in self.scores.items():
            reproducible = figures["reproducible_end_error"] or {}
            ends.append({"set": name, "launches": "all", "n": figures["n"], **figures["end_error"]})
            ends.append({"set": name, "launches": "reproducible", "n": figures["n_reproducible"], **reproducible})
            makespans.append({"name": name, **figures, **figures["makespan_error"]})
            halves = {half: of for half, of in figures["halves"].items() if of is not None}
            split += [
                {"set": name, "scenarios": half, "reproducible": of["n_reproducible"], **brief(of)}
                for half, of in halves.items()
            ]
        sides = {"both": "slowdown", "foreground": "foreground", "background": "background"}
        networks = [
            {"side": side, "pairs": self.networks["n"], **self.networks[f"{key}_error"]}
            for side, key in sides.items()
            if f"{key}_error" in self.networks
        ]
        return [
            table_of("Limits", checks, limits),
            _percents("End times", ends, 3),
            table_of(
                "Makespans, order of ends",
                makespans,
                "set = {name} | n = {scenarios} | median = {median:.2%} | p90 = {p90:.2%} | p95 = {p95:.2%} "
                "| rank correlation = {rank_correlation:.4f}",
            ),
            _percents("Slowdown of pairs of networks", networks, 2),
            _percents("Even and odd scenarios", split, 3, heads=("end median", "end p90", "makespan median")),
            self._without_one(),
            self._every_pair(),
        ]

    def _without_one(self) -> Table:
        rows = []
        for label, sets in self.without.items():
            named = {f"{name} {figure}": error for name, of in sets.items() for figure, error in of.items()}
            rows.append({"without": label, **{head.removesuffix("_median"): error for head, error in named.items()}})
        sampled = "".join(f"of {name} every {n}th is run; " for name, n in EVERY.items() if name in self.sets)
        return _percents("Without one mechanism", rows, 1, ABLATION_NOTE.format(sampled=sampled))

    def _every_pair(self) -> Table:
        each = self.networks.get("each", [])
        faster = sum(pair[side]["measured"] < 1.0 for pair in each for side in ("foreground", "background"))
        return table_of(
            EVERY_PAIR,
            each,
            "foreground beside background = {fg} beside {bg} | mode = {mode} "
            "| fg predicted = {foreground[predicted]:.2f} | fg measured = {foreground[measured]:.2f} "
            "| fg error = {foreground[error]:+z.1%} "
            "| bg predicted = {background[predicted]:.2f} | bg measured = {background[measured]:.2f} "
            "| bg error = {background[error]:+z.1%}",
            EVERY_PAIR_NOTE.format(count=2 * len(each), faster=faster),
        )


def brief(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """What a set's :func:`~gpusched_env.experiments.validate.scoring.score` is held to."""
    ends = figures["reproducible_end_error"] or {"median": None, "p90": None}
    makespan = figures["makespan_error"]["median"]
    return {"median": ends["median"], "p90": ends["p90"], "makespan_median": makespan}


def _percents(
    title: str, rows: list[dict[str, Any]], names: int, note: str = "", heads: Sequence[str] | None = None
) -> Table:
    """Errors behind the first ``names`` fields of each row; ``heads`` of the errors, if not their names."""
    values = frame(rows)
    values = values.set_index([*values.columns[:names]]).astype(float) if rows else values
    return table_of_numbers(title, [*values.index.names, *(heads or ())] if rows else [], values, ".2%", note)


def _limited(check: Limited) -> str:
    if check.set == MODEL_PAIRS:
        return f"slowdown, {check.figure}"
    return "makespan, median" if check.figure == "makespan median" else f"end, {check.figure}"
