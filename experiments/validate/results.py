"""Predicts all recordings of a folder, and what was found: figures as plain data and whether they hold."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env import __version__
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.figures import tables_csv
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.recorded import GraphPair, graph_cells
from gpusched_env.experiments.lib.verdicts import JudgedResult, Simulation, as_row, run_cells
from gpusched_env.experiments.lib.workers import Progress, Shared
from gpusched_env.experiments.validate.processes import (
    EVERY_PROGRAM_PAIR,
    MOST_FAR,
    PredictedPrograms,
    program_cells,
)
from gpusched_env.experiments.validate.recordings import MODEL_PAIRS, PROCESSES, Recordings
from gpusched_env.experiments.validate.replay import DRAWS, Predict, RecordingReplay
from gpusched_env.experiments.validate.scoring import (
    brief,
    ends_of,
    halves,
    launches,
    networks_elsewhere,
    of_launches,
    of_networks,
    score,
    spread,
    worst_launches,
)
from gpusched_env.experiments.validate.tables import ALL_ON, CONTROLS, EVERY, EVERY_PAIR, Predicted, all_tables, outcome
from gpusched_env.hardware.specs import GpuSpec, load_gpu

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
"""Largest errors that hold: of the ends of all launches, of makespans; of slowdowns for pairs of networks."""
OF_CONSTANT = 2.0 / 3.0
"""Largest median error of slowdowns that holds, of foregrounds and backgrounds apart, over that of a constant."""


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
        controls: Mapping[str, Predicted] | None = None,
        programs: PredictedPrograms = PredictedPrograms(),  # noqa: B008
    ) -> None:
        """Keep them.

        Args:
            gpu: of the recordings.
            recordings: what was predicted.
            launches: of all sets, see :func:`~gpusched_env.experiments.validate.scoring.launches`.
            model_pairs: pairs of networks with the predicted slowdowns of both.
            ablation: launches by what is off; none if not asked for.
            controls: the same pairs predicted without a mechanism, by its name; without those that change nothing.
            programs: pairs of programs that Python launches.
        """
        self.name = f"validation on {gpu.name}"
        self.gpu, self.recordings, self.launches, self.model_pairs = gpu, recordings, launches, model_pairs
        self.ablation = dict(ablation or {})
        self.controls = dict(controls or {})
        self.programs = programs

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
        elsewhere = networks_elsewhere(self.recordings.folder)
        for row in each:
            row["new"] = sum(name not in elsewhere for name in (row["fg"], row["bg"]))
        figures = {
            "slowdown_error": spread(np.concatenate([*errors.values()])),
            **{f"{side}_error": spread(of) for side, of in errors.items()},
            "each": each,
        }
        return {"n": len(each), **(figures if each else {}), "skipped": len(self.recordings.skipped)}

    @functools.cached_property
    def network_skills(self) -> dict[str, dict[str, Any]]:
        """Errors of the slowdowns of either side beside those of its rivals."""
        return of_networks(self.model_pairs, self.recordings, self.gpu.sms) if self.model_pairs else {}

    @functools.cached_property
    def skills(self) -> list[dict[str, Any]]:
        """Errors beside those of its rivals: of each set's ends, and of the slowdowns of either side."""
        kernels = [{"set": name, "of": "ends", **of_launches(of)} for name, of in self.sets.items() if "ready_us" in of]
        networks = [{"set": MODEL_PAIRS, "of": side, **of} for side, of in self.network_skills.items()]
        return [*kernels, *networks]

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
        over_constant = [
            Limited(
                MODEL_PAIRS,
                f"{side} over a constant",
                of["simulator"]["median"] / of["constant"]["median"],
                OF_CONSTANT,
            )
            for side, of in self.network_skills.items()
            if of["constant"]["median"]
        ]
        return [
            *(
                Limited(name, figure.replace("_", " "), errors[name][figure], limit * factor)
                for name, largest in LIMITS.items()
                for figure, limit in largest.items()
                if figure in errors.get(name, {})
            ),
            *over_constant,
            *([Limited(PROCESSES, "pairs beyond 15 %", self.programs.far, MOST_FAR)] if self.programs.pairs else []),
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
            **({PROCESSES: self.programs.rows} if self.programs.pairs else {}),
            "skill": self.skills,
            **({"ablation": {"every": every, "without": self.without}} if self.without else {}),
            "worst": worst.to_dict("records"),
            "limits": [as_row(check) for check in self.checks()],
            "holds": self.holds,
        }

    def markdown(self, pairs: str = "validation-pairs.csv") -> str:
        """The page; ``pairs``: the file of :meth:`pairs_csv`, relative to it."""
        constants = {"transfer": TRANSFER, "calibrated": CALIBRATED_ON, "draws": DRAWS}
        return page("validation.md.j2", validation=self, pairs=pairs, **constants)

    def pairs(self) -> Table | None:
        """Every pair of networks, or else of programs, if there are any."""
        every = (EVERY_PAIR, EVERY_PROGRAM_PAIR)
        return next((table for table in self.tables() if table.title in every and table.rows), None)

    def pairs_csv(self) -> str:
        """The table of pairs as CSV; nothing without any."""
        table = self.pairs()
        return "" if table is None else tables_csv([({}, table)])

    def outcome(self) -> str:
        """What came out, what did not, and why: what the page begins with."""
        return outcome(self)

    def printed(self) -> list[Table]:
        return [table for table in self.tables() if table.title not in (EVERY_PAIR, EVERY_PROGRAM_PAIR)]

    def tables(self) -> list[Table]:
        return all_tables(self)


class ValidationRun:
    """The simulations that a validation needs, counted before they run."""

    def __init__(self, recordings: Recordings, gpu: str, *, ablation: bool = False) -> None:
        """Plan them.

        Args:
            recordings: what is predicted.
            gpu: name, or path of a specification.
            ablation: also with each mechanism switched off.

        Raises:
            InputError: unknown GPU.
        """
        self.recordings = recordings
        self.gpu = load_gpu(gpu)
        self._pairs_on = {"gpu": gpu, "own": Shared(recordings.workloads)}
        made = {name: make(recordings.workloads) for name, make in CONTROLS.items()}
        self._controls_on = {name: {"gpu": gpu, "own": Shared(own)} for name, own in made.items() if own}
        complete = RecordingReplay(recordings.kernels, self.gpu)
        self._predictions: dict[str, dict[str, list[Predict]]] = {}
        """The predictions by what is off and set."""
        for variant, replay in {ALL_ON: complete, **(complete.ablations() if ablation else {})}.items():
            shared = Shared(replay)
            self._predictions[variant] = {
                name: [Predict(shared, row) for row in rows[:: 1 if variant == ALL_ON else EVERY.get(name, 1)]]
                for name, rows in recordings.sets.items()
            }
        given = Shared(recordings.programs.workloads)
        self._programs = [(pair, program_cells(pair, gpu, given)) for pair in recordings.programs.pairs]
        # The longest first, so that no worker is left with one at the end.
        self._cells: list[Simulation] = [
            *graph_cells(recordings.model_pairs or [], **self._pairs_on),
            *(cell for on in self._controls_on.values() for cell in graph_cells(recordings.model_pairs or [], **on)),
            *(cell for _, cells in self._programs for cell in cells),
            *(cell for sets in self._predictions.values() for cells in sets.values() for cell in cells),
        ]

    def __len__(self) -> int:
        return len(self._cells)

    def run(self, workers: int | None = 1, on_progress: Progress | None = None) -> Validation:
        """Simulate everything; ``on_progress`` is called with the number done and its share."""
        found = run_cells(self._cells, workers=workers, on_progress=on_progress)
        recorded = self.recordings.model_pairs or []
        pairs = [(pair, pair.simulated(found, **self._pairs_on)) for pair in recorded]
        controls = {
            name: [(pair, pair.simulated(found, **on)) for pair in recorded] for name, on in self._controls_on.items()
        }
        by_variant = {
            variant: launches({name: [(cell.scenario, found[cell]) for cell in cells] for name, cells in sets.items()})
            for variant, sets in self._predictions.items()
        }
        everything = by_variant.pop(ALL_ON)
        rivals = ends_of(self.recordings.sets, self.recordings.kernels, self.gpu.sms)
        programs = PredictedPrograms([(pair, _slowdowns(found, *cells)) for pair, cells in self._programs])
        return Validation(self.gpu, self.recordings, everything.join(rivals), pairs, by_variant, controls, programs)


def _slowdowns(found: Mapping[Any, Any], both: Simulation, *alone: Simulation) -> tuple[float, float]:
    """Of two programs, times together over those alone."""
    front, behind = (us / found[cell][0] for us, cell in zip(found[both], alone, strict=True))
    return front, behind
