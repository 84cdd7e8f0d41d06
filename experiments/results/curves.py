"""Learning curves of one training with several seeds: a compact file, and their picture."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gpusched_env.agents.training.folder import Record, differences, read_record
from gpusched_env.display.palette import COLOURS, PALE
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import Figure, encode_rows, read_struct
from gpusched_env.experiments.lib.pages import drawing
from gpusched_env.experiments.lib.statistics import Interval, mean_interval
from gpusched_env.experiments.ranking.made import Fingerprints, check_together
from gpusched_env.reading import Label

SCHEMA = "gpusched-curves/1"


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The validations of one training."""

    seed: int
    command: str
    versions: dict[str, str]
    made: Fingerprints = Fingerprints()
    """Hashes of what made the training."""
    timesteps: list[int]
    """Decisions before each validation."""
    costs: list[Figure]
    """Mean cost of each validation."""

    def __post_init__(self) -> None:
        if len(self.timesteps) != len(self.costs) or not self.costs:
            raise ValueError(f"{len(self.timesteps)} timesteps and {len(self.costs)} costs, must be as many, and some")

    @property
    def best(self) -> float:
        """The cost of the model that was kept."""
        return min(self.costs)


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """Trainings that differ in their seed only."""

    schema: str = SCHEMA
    scenario: str
    training: dict[str, Any]
    """The configuration of all of them, without the seed."""
    episodes: int
    """Episodes of a validation."""
    baselines: dict[Label, Figure]
    """Mean costs of hand-written schedulers on these episodes."""
    timesteps: list[int]
    """Points at which the mean over seeds is taken: decisions before each validation, on average over the seeds."""
    curves: list[Curve]
    """One curve a seed."""

    def __post_init__(self) -> None:
        if not self.timesteps:
            raise ValueError("timesteps: is empty")

    def means(self) -> list[Interval]:
        """The means over seeds at each of ``timesteps``; costs are linear between validations."""
        costs = [np.interp(self.timesteps, curve.timesteps, curve.costs).tolist() for curve in self.curves]
        return [mean_interval(found) for found in zip(*costs, strict=True)]

    def best_baselines(self, count: int) -> list[tuple[str, float]]:
        """The hand-written schedulers of lowest cost, best first."""
        return sorted(self.baselines.items(), key=lambda item: item[1])[:count]


def gather(folders: Sequence[Path]) -> Curves:
    """The curves of the trainings in ``folders``.

    Raises:
        InputError: a folder is none of a training, or trainings differ in more than the seed, which is named; or other
            sources made them.
    """
    records = sorted(map(read_record, folders), key=lambda record: record.config.seed)
    first = records[0]
    for before, record in itertools.pairwise(records):
        if before.config.seed == record.config.seed:
            raise InputError(f"{before.folder} and {record.folder}: both have seed {record.config.seed}")
        _check_same(first, record)
    made = {str(record.folder): msgspec.convert(record.made, Fingerprints) for record in records}
    check_together(made)
    config: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(first.config.checked()))
    return Curves(
        scenario=first.config.name,
        training={name: value for name, value in config.items() if name != "seed"},
        episodes=len(first.curve.seeds),
        baselines=_baselines(records),
        timesteps=[round(statistics.fmean(points)) for points in zip(*map(_timesteps, records), strict=True)],
        curves=[
            Curve(
                seed=record.config.seed,
                command=record.command,
                versions=record.versions,
                made=made[str(record.folder)],
                timesteps=_timesteps(record),
                costs=[point.cost for point in record.curve.validations],
            )
            for record in records
        ],
    )


def encode_curves(curves: Curves) -> bytes:
    """JSON, a line a training."""
    return encode_rows(msgspec.structs.replace(curves, curves=[]), curves.curves)


def read_curves(path: Path) -> Curves:
    """A file that ``gpusched lab curves`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    return read_struct(path, Curves, SCHEMA, "no learning curves", "gpusched lab curves --json writes them")


def _check_same(first: Record, other: Record) -> None:
    """Refuse trainings that differ in more than the seed, or whose validations cannot be averaged."""
    where = f"{first.folder} and {other.folder}"
    found = differences(first.config.checked(), other.config.checked())
    told = [f"{name} ({mine} and {theirs})" for name, mine, theirs in found if name != "seed"]
    if told:
        raise InputError(f"{where}: differ in {', '.join(told)}; only the seed may differ")
    package = "gpusched-env"
    ours, others = first.versions.get(package), other.versions.get(package)
    if ours != others:
        raise InputError(f"{where}: trained with versions {ours} and {others} of {package}")
    if not _comparable(_timesteps(first), _timesteps(other), first.config.validate_every):
        raise InputError(
            f"{where}: {len(_timesteps(first))} and {len(_timesteps(other))} validations, up to "
            f"{_timesteps(first)[-1]:,} and {_timesteps(other)[-1]:,} decisions; --resume completes a training"
        )


def _baselines(records: Sequence[Record]) -> dict[str, float]:
    """The baselines of all trainings together: one may have been run without."""
    found: dict[str, float] = {}
    for record in records:
        for name, cost in record.curve.baselines.items():
            if not math.isclose(found.setdefault(name, cost), cost, rel_tol=1e-9):
                raise InputError(
                    f"{record.folder}: baseline {name} costs {cost:.6g} there and {found[name]:.6g} in another training"
                )
    return found


def _comparable(mine: list[int], theirs: list[int], every: int) -> bool:
    """Whether there are as many validations, none an interval away from the other's.

    A validation is due ``every`` decisions after the last one, but waits for the end of a generation. Generations
    differ in length, so that the points of two searches drift apart, by less than one interval.
    """
    return len(mine) == len(theirs) and all(abs(a - b) < every for a, b in zip(mine, theirs, strict=True))


def _timesteps(record: Record) -> list[int]:
    return [point.timesteps for point in record.curve.validations]


BASELINES = 3
"""Hand-written schedulers that are drawn at most: the best one, and others that are within the frame with it."""
SIZE_IN = (7.5, 3.8)
AGENT, SEED, BASELINE = COLOURS[0], PALE, COLOURS[1]
SHOWN_SHARE = 0.8
"""Share of all costs that fits into the frame: an untrained agent can cost many times what matters later."""
WHOLE = 3.0
"""The frame holds all costs if it need not be higher than this many times."""


def curves_svg(curves: Curves) -> bytes:
    """The picture as SVG; equal curves give equal bytes.

    Raises:
        InputError: matplotlib is not installed.
    """
    with drawing(SIZE_IN) as (figure, finished):
        axes = figure.add_subplot()
        steps = np.array(curves.timesteps) / 1e6
        for number, curve in enumerate(curves.curves):
            label = counted(len(curves.curves), "seed") if number == 0 else None
            axes.plot(np.array(curve.timesteps) / 1e6, curve.costs, color=SEED, linewidth=0.8, label=label)
        means = curves.means()
        low, high = ([getattr(m, side) for m in means] for side in ("low", "high"))
        if None not in low:
            axes.fill_between(steps, low, high, color=AGENT, alpha=0.18, linewidth=0, label="95 % interval")
        axes.plot(steps, [m.mean for m in means], color=AGENT, linewidth=2.0, label="mean")
        bottom, top = limits(curves)
        best = [(name, cost) for name, cost in curves.best_baselines(BASELINES) if cost <= top]
        axes.set_ylim(bottom, top)
        axes.set_xlim(0.0, max(float(steps[-1]), 1e-9))
        heights = spread_labels([cost for _, cost in best], 0.055 * (top - bottom))
        for number, ((name, cost), height) in enumerate(zip(best, heights, strict=True)):
            style = ("-", "--", ":")[number % 3]
            axes.axhline(cost, color=BASELINE, linewidth=1.2, linestyle=style)
            axes.annotate(
                f"{name} {cost:.4g}",
                (1.0, cost),
                xytext=(1.02, height),
                xycoords=axes.get_yaxis_transform(),
                textcoords=axes.get_yaxis_transform(),
                color=BASELINE,
                va="center",
                annotation_clip=False,
            )
        axes.set_xlabel("decisions in millions")
        axes.set_ylabel("cost in validation")
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
        return finished()


def limits(curves: Curves) -> tuple[float, float]:
    """Lowest and highest cost in the frame: the best scheduler, all that is low, and of what is high a part."""
    costs = [cost for curve in curves.curves for cost in curve.costs]
    best = [cost for _, cost in curves.best_baselines(1)]
    bottom = min(costs + best)
    top = max([float(np.quantile(costs, SHOWN_SHARE)), *best])
    if max(costs) - bottom <= WHOLE * (top - bottom):
        top = max([*costs, *best])
    margin = 0.08 * (top - bottom) or 0.01 * abs(top) or 1.0
    return bottom - margin, top + margin


def spread_labels(values: Sequence[float], gap: float) -> list[float]:
    """Ascending ``values`` moved as little upwards as puts at least ``gap`` between neighbours, then centred again."""
    moved: list[float] = []
    for value in values:
        moved.append(max(value, moved[-1] + gap) if moved else value)
    shift = sum(m - v for m, v in zip(moved, values, strict=True)) / max(1, len(moved))
    return [value - shift for value in moved]
