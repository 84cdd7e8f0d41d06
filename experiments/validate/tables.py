"""The figures of a validation as tables: of plain cells, for the terminal, Markdown and HTML."""

from __future__ import annotations

import itertools
from typing import Any

from gpusched_env.display.table import Table, printed
from gpusched_env.experiments.validate.dataset import KERNEL_SETS, MODEL_PAIRS
from gpusched_env.experiments.validate.results import bounds

NAMES = {"pairs": "pairs", "mixes": "mixes", "sequences": "sequences", MODEL_PAIRS: "pairs of networks"}
SIDES = {"slowdown_error": "both", "foreground_error": "foreground", "background_error": "background"}
EVERY_PAIR = "Every pair of networks"
WITHOUT_ONE = "Without one mechanism"


def all_tables(data: dict[str, Any]) -> list[Table]:
    """Every table of :func:`~gpusched_env.experiments.validate.results.results_dict`."""
    found = [_limits(data), _ends(data), _makespans(data), _networks(data), _halves(data), _ablation(data)]
    return [table for table in [*found, _each_pair(data)] if table.rows]


def _limits(data: dict[str, Any]) -> Table:
    rows = [
        (
            NAMES[b.set_name],
            _limited_figure(b.set_name, b.figure),
            percent(b.error),
            percent(b.limit),
            _verdict(b.holds),
        )
        for b in bounds(data)
    ]
    return Table("Limits", ("set", "figure", "error", "limit", ""), rows)


def _limited_figure(set_name: str, figure: str) -> str:
    if set_name == MODEL_PAIRS:
        return f"slowdown, {figure}"
    return "makespan, median" if figure == "makespan median" else f"end, {figure}"


def _verdict(holds: bool) -> str:
    return "holds" if holds else "off"


def _ends(data: dict[str, Any]) -> Table:
    rows = []
    for name in _sets(data):
        figures = data[name]
        for which, key, count in (
            ("all", "end_error", figures["n"]),
            ("reproducible", "reproducible_end_error", figures["n_reproducible"]),
        ):
            rows.append((NAMES[name], which, str(count), *_three(figures[key])))
    return Table("End times", ("set", "launches", "n", "median", "p90", "p95"), rows)


def _makespans(data: dict[str, Any]) -> Table:
    rows = [
        (
            NAMES[name],
            str(data[name]["scenarios"]),
            *_three(data[name]["makespan_error"]),
            f"{data[name]['rank_correlation']:.4f}",
        )
        for name in _sets(data)
    ]
    return Table("Makespans, order of ends", ("set", "n", "median", "p90", "p95", "rank correlation"), rows)


def _networks(data: dict[str, Any]) -> Table:
    figures = data.get(MODEL_PAIRS, {})
    rows = [(label, str(figures["n"]), *_three(figures[key])) for key, label in SIDES.items() if key in figures]
    return Table("Slowdown of pairs of networks", ("side", "pairs", "median", "p90", "p95"), rows)


def _each_pair(data: dict[str, Any]) -> Table:
    rows = []
    for pair in data.get(MODEL_PAIRS, {}).get("each", []):
        sides = (pair[side][key] for side in ("foreground", "background") for key in ("predicted", "measured", "error"))
        cells = (f"{v:+.1%}" if i % 3 == 2 else f"{v:.2f}" for i, v in enumerate(sides))
        rows.append((f"{pair['fg']} beside {pair['bg']}", pair["mode"], *cells))
    columns = (f"{side} {what}" for side in ("fg", "bg") for what in ("predicted", "measured", "error"))
    return Table(EVERY_PAIR, ("foreground beside background", "mode", *columns), rows)


def _halves(data: dict[str, Any]) -> Table:
    rows = []
    for name, half in itertools.product(_sets(data), ("even", "odd")):
        figures = data[name]["halves"][half]
        if figures is not None:
            ends = figures["reproducible_end_error"]
            makespan = percent(figures["makespan_error"]["median"])
            rows.append((NAMES[name], half, str(figures["n_reproducible"]), *_three(ends)[:2], makespan))
    heads = ("set", "scenarios", "reproducible", "end median", "end p90", "makespan median")
    return Table("Even and odd scenarios", heads, rows)


def _ablation(data: dict[str, Any]) -> Table:
    sets = _sets(data)
    heads = ("without", *(f"{NAMES[name]} {what}" for name in sets for what in ("median", "p90", "makespan")))
    rows = []
    for label, found in data.get("ablation", {}).get("without", {}).items():
        figures = (found[name][key] for name in sets for key in ("median", "p90", "makespan_median"))
        rows.append((label, *("–" if value is None else percent(value) for value in figures)))
    return Table(WITHOUT_ONE, heads, rows)


def _sets(data: dict[str, Any]) -> list[str]:
    return [name for name in KERNEL_SETS if name in data]


def _three(errors: dict[str, float] | None) -> tuple[str, str, str]:
    if errors is None:
        return "–", "–", "–"
    return percent(errors["median"]), percent(errors["p90"]), percent(errors["p95"])


def percent(value: float) -> str:
    """``0.0123`` as ``1.23 %``."""
    return f"{100 * value:.2f} %"


def tables(data: dict[str, Any]) -> Any:
    """Everything for the terminal, but for one long table that is on the pages."""
    return printed(table for table in all_tables(data) if table.title != EVERY_PAIR)
