"""What is right or wrong in a result: figures beside published ones, claims, controls, and results made of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from gpusched_env.display.table import NONE, Table
from gpusched_env.errors import InputError, needs
from gpusched_env.experiments.lib.criteria import VERDICTS, Criterion, missed_by
from gpusched_env.experiments.lib.terminal import DisplayedResult
from gpusched_env.experiments.lib.workers import Progress, counting, run_tasks

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame
    from gpusched_env.experiments.lib.kept_cells import KeptCells


T = TypeVar("T")
OF_CLAIMS = {**VERDICTS, False: "contradicted"}
UNDECIDED = "undecided"
NOTE_ON_TARGETS = "*Holds within* is a criterion of our own."


class Judged(Protocol):
    """Something that is right or wrong."""

    @property
    def holds(self) -> bool | None:
        """``None``: cannot be told."""
        ...


class JudgedByName(Judged, Protocol):
    """Something that is judged on a page of its own criteria."""

    def as_criterion(self) -> Criterion:
        """What is judged, and how it came out; several may judge one criterion."""
        ...


@dataclass(frozen=True, kw_only=True)
class Check(ABC):
    """A simulated figure beside the recorded one."""

    simulated: float
    recorded: float
    tolerance: float
    """Largest relative error that holds."""

    @property
    def error(self) -> float:
        """The relative error, signed."""
        return self.simulated / self.recorded - 1.0

    @property
    def holds(self) -> bool:
        return abs(self.error) <= self.tolerance

    @abstractmethod
    def named(self) -> str:
        """The name of the criterion."""

    def as_criterion(self) -> Criterion:
        reach = self.tolerance * abs(self.recorded)
        low, high = self.recorded - reach, self.recorded + reach
        within, miss = range_text(low, high), missed_by(self.simulated, low, high)
        return Criterion(self.named(), f"{self.simulated:.3g}", within, 0.0 if self.holds else miss, self.holds)


@dataclass(frozen=True)
class Target:
    """A figure of ours, and the range in which it holds.

    The range is a criterion of our own; what is published stands beside it (:meth:`of_figure`).
    """

    what: str
    low: float
    high: float
    """The upper end of the range; ``inf``: there is none."""
    ours: float
    slack: float = 0.0
    """The distance by which the figure may lie outside the range."""
    note: str = ""
    published: str = NONE
    """What the paper has in place of our figure."""

    @classmethod
    def of_figure(cls, what: str, published: float, ours: float, slack: float = 0.0, note: str = "") -> Target:
        """A figure that is published, and how far ours may lie from it."""
        return cls(what, published, published, ours, slack, note, f"{published:.4g}")

    @property
    def difference(self) -> float:
        """How far outside of the range our figure lies, signed; 0 inside."""
        return self.ours - min(max(self.ours, self.low), self.high)

    @property
    def holds(self) -> bool:
        return abs(self.difference) <= self.slack + 1e-12

    def as_criterion(self) -> Criterion:
        low, high = self.low - self.slack, self.high + self.slack
        miss = 0.0 if self.holds else missed_by(self.ours, low, high)
        return Criterion(self.what, f"{self.ours:.3g}", range_text(low, high), miss, self.holds)


@dataclass(frozen=True, slots=True)
class Compared:
    """A published figure and ours."""

    what: str
    unit: str
    published: float
    ours: float | None
    """Our figure; ``None``: there is nothing that could stand in."""
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the published one."""
        return None if self.ours is None else self.ours - self.published


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim with its evidence."""

    observation: str
    claim: str
    holds: bool | None
    """Whether the claim holds in the paper's own setting; ``None``: not scored, or undecided."""
    evidence: str
    agree: int
    """Settings in which it holds, of ``settings``."""
    settings: int
    note: str
    undecided: bool = False
    """Seeds disagree: it holds, or not, by less than the noise."""

    @property
    def verdict(self) -> str:
        return UNDECIDED if self.undecided else OF_CLAIMS[self.holds]


@dataclass(frozen=True, slots=True)
class Claim(Generic[T]):
    """What a paper says of a setting, and how it is judged there."""

    observation: str
    text: str
    judge: Callable[[T], tuple[bool, str]] | None
    """Gives the verdict and its evidence from what a setting showed. ``None``: not scored, as ``note`` explains."""
    note: str = ""

    def judged(self, found: Mapping[Any, T], own: Any, repeated: Sequence[T] = ()) -> Finding:
        """Judge every setting of ``found``; what holds in the paper's ``own`` decides, unless the same setting
        ``repeated`` with several seeds says now one thing, now the other."""
        if self.judge is None:
            return Finding(self.observation, self.text, None, "", 0, 0, self.note)
        verdicts = {setting: self.judge(of) for setting, of in found.items()}
        holds, evidence = verdicts[own]
        agree = sum(bool(held) for held, _ in verdicts.values())
        undecided = any(bool(self.judge(of)[0]) != bool(holds) for of in repeated)
        verdict = None if undecided else bool(holds)
        return Finding(self.observation, self.text, verdict, evidence, agree, len(verdicts), self.note, undecided)


def as_row(item: Any) -> dict[str, Any]:
    """Fields and properties of a dataclass by name: a row of JSON."""
    kind = type(item)
    properties = [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
    return {**asdict(item), **{name: getattr(item, name) for name in properties}}


def table_of(title: str, rows: DataFrame | Sequence[Any], columns: str, note: str = "") -> Table:
    """A table of records.

    Args:
        title: of the table.
        rows: a frame, dataclasses, or records. Of one that ``holds`` or not, ``{verdict}`` says so.
        columns: heads, and how cells are made of a record's fields, as in ``name = {name} | gain = {speedup:.2f}``.
        note: what stands between title and rows.
    """
    records = (
        [row if isinstance(row, dict) else as_row(row) for row in rows]
        if isinstance(rows, Sequence)
        else (rows.reset_index().to_dict("records"))
    )
    heads, forms = zip(*([part.strip() for part in column.split("=", 1)] for column in columns.split("|")), strict=True)
    shown = [
        [form.format(verdict=VERDICTS[each["holds"]] if "holds" in each else "", **each) for form in forms]
        for each in records
    ]
    return Table(title, heads, shown, note)


def table_of_numbers(title: str, heads: Sequence[str], values: DataFrame, form: str = ".2f", note: str = "") -> Table:
    """A table of a frame of numbers.

    Args:
        title: of the table.
        heads: of the levels of the index, and of the columns; names that are left out are those of the frame.
        values: shown behind their index; NaN as a dash.
        form: of the numbers.
        note: what stands between title and rows.
    """
    rows = [
        (*map(str, index if isinstance(index, tuple) else (index,)), *(NONE if v != v else f"{v:{form}}" for v in row))
        for index, row in zip(values.index, values.to_numpy().tolist(), strict=True)
    ]
    names = [*values.index.names, *values.columns]
    return Table(title, [*heads, *names[len(heads) :]], rows, note)


def range_text(low: float, high: float) -> str:
    """Where a figure holds, as text."""
    if low == high:
        return f"{low:.4g}"
    if math.isinf(high):
        return f"at least {low:.4g}"
    if math.isinf(low):
        return f"at most {high:.4g}"
    return f"{low:.4g} to {high:.4g}" if low else f"at most {high:.4g}"


def targets_table(title: str, targets: Sequence[Target]) -> Table:
    """Published figures, the ranges in which ours hold, and ours."""
    published = any(target.published != NONE for target in targets)
    rows = [
        (
            target.what,
            *((target.published,) if published else ()),
            range_text(target.low - target.slack, target.high + target.slack),
            f"{target.ours:.3g}",
            f"{target.difference:+.3g}" if target.difference else "inside",
            VERDICTS[target.holds],
            target.note,
        )
        for target in targets
    ]
    heads = ("figure", *(("published",) if published else ()), "holds within", "ours", "difference", "verdict", "at")
    return Table(title, heads, rows, NOTE_ON_TARGETS)


def compared_table(title: str, rows: Sequence[Compared]) -> Table:
    """Published figures beside ours."""
    cells = []
    for row in rows:
        ours = NONE if row.ours is None else f"{row.ours:.0f} {row.unit}"
        unit = "points" if row.unit == "%" else row.unit
        difference = NONE if row.difference is None else f"{row.difference:+z.0f} {unit}"
        cells.append((row.what, f"{row.published:g} {row.unit}", ours, difference, row.note))
    return Table(title, ("figure", "published", "simulated", "difference", "remark"), cells)


def findings_table(title: str, findings: Sequence[Finding]) -> Table:
    """Claims with verdict and evidence."""
    rows = [
        (
            f.observation,
            f.claim or NONE,
            f.verdict,
            f"{f.agree} of {f.settings}" if f.settings else NONE,
            ". ".join(part for part in (f.evidence, f.note) if part),
        )
        for f in findings
    ]
    return Table(title, ("", "claim", "verdict", "settings", "figures"), rows)


SHOWN: Final = "shown"
_VERDICTS: Final = {(True, False): SHOWN, (True, True): "not shown", (False, False): "off", (False, True): "off"}


def verdict_of(comes_out: bool, without: bool) -> str:
    """``shown``, ``not shown`` (it comes out ``without`` its mechanism as well) or ``off``."""
    return _VERDICTS[bool(comes_out), bool(without)]


class Simulation(Protocol):
    """One simulation: hashable, and can be sent to another process."""

    def run(self, device: str) -> Any:
        """The figures of the cell; ``device`` simulates the kernels."""
        ...


def run_cells(
    cells: Sequence[Simulation],
    device: str = "compiled",
    workers: int | None = None,
    on_progress: Progress | None = None,
    kept: KeptCells | None = None,
    ray_address: str | None = None,
) -> dict[Any, Any]:
    """The figures of every cell, by cell; in worker processes (default: one a CPU core), or on the Ray cluster at
    ``ray_address``.

    Those that are ``kept`` are not simulated, all others are kept as they finish.
    """
    found = {} if kept is None else kept.of(cells)
    ahead = [cell for cell in cells if cell not in found]
    tell = counting(on_progress, len(cells), len(found))
    for index, figures in _finished(_Simulate(device), ahead, workers, ray_address):
        found[ahead[index]] = figures
        if kept is not None:
            kept.add(ahead[index], figures)
        tell(1)
    return {cell: found[cell] for cell in cells}


def _finished(
    task: _Simulate, cells: Sequence[Simulation], workers: int | None, ray_address: str | None
) -> Iterator[tuple[int, Any]]:
    """Places of cells with their figures, as they finish.

    Raises:
        InputError: there is no Ray, or no cluster of it.
    """
    if ray_address is None or not cells:
        return run_tasks(task, cells, workers)
    try:
        from gpusched_env.experiments.lib.ray_tasks import run_tasks_on_ray
    except ModuleNotFoundError as error:
        raise InputError(needs("--ray-address", "ray")) from error
    return run_tasks_on_ray(task, cells, ray_address)


@dataclass(frozen=True, slots=True)
class _Simulate:
    """The task of worker processes."""

    device: str

    def __call__(self, cell: Simulation) -> Any:
        return cell.run(self.device)


class JudgedResult(DisplayedResult, ABC):
    """What was found, and whether it holds."""

    name: str

    @abstractmethod
    def checks(self) -> Sequence[Judged]:
        """The checks that the exit status depends on."""

    @abstractmethod
    def summary(self) -> str:
        """The result in half a line."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """The tables of the page, in order; some may have no rows."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""

    @abstractmethod
    def markdown(self) -> str:
        """The page of the result, Markdown."""

    def printed(self) -> Sequence[Table]:
        """The tables for the terminal, the most important last."""
        return self.tables()

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.holds is None or check.holds for check in self.checks())

    def summary_line(self) -> str:
        """The line that sums up the result."""
        return f"{'OK' if self.holds else 'FAILED'}: {self.name}: {self.summary()}"

    def in_notebook(self) -> Sequence[Table]:
        """All tables of the result, for a notebook."""
        return self.tables()

    def headline(self) -> str:
        """Whether it holds, and what comes out."""
        return f"{type(self).__name__}: {self.summary_line()}"
