"""The figures of a validation as tables: of plain cells, for the terminal, Markdown and HTML."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from gpusched_env.experiments.validate.dataset import KERNEL_SETS, MODEL_PAIRS
from gpusched_env.experiments.validate.results import bounds

NAMES = {"pairs": "pairs", "mixes": "mixes", "sequences": "sequences", MODEL_PAIRS: "pairs of networks"}
SIDES = {"slowdown_error": "both", "foreground_error": "foreground", "background_error": "background"}
EVERY_PAIR = "Every pair of networks"
WITHOUT_ONE = "Without one mechanism"


@dataclass(frozen=True, slots=True)
class Plain:
    """A table whose first column is text and whose other columns are numbers."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def all_tables(data: dict[str, Any]) -> list[Plain]:
    """Every table of :func:`~gpusched_env.experiments.validate.results.results_dict`."""
    found = [_limits(data), _ends(data), _makespans(data), _networks(data), _halves(data), _ablation(data)]
    return [table for table in [*found, _each_pair(data)] if table.rows]


def _limits(data: dict[str, Any]) -> Plain:
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
    return Plain("Limits", ("set", "figure", "error", "limit", ""), rows)


def _limited_figure(set_name: str, figure: str) -> str:
    if set_name == MODEL_PAIRS:
        return f"slowdown, {figure}"
    return "makespan, median" if figure == "makespan median" else f"end, {figure}"


def _verdict(holds: bool) -> str:
    return "holds" if holds else "off"


def _ends(data: dict[str, Any]) -> Plain:
    rows = []
    for name in _sets(data):
        figures = data[name]
        for which, key, count in (
            ("all", "end_error", figures["n"]),
            ("reproducible", "reproducible_end_error", figures["n_reproducible"]),
        ):
            rows.append((NAMES[name], which, str(count), *_three(figures[key])))
    return Plain("End times", ("set", "launches", "n", "median", "p90", "p95"), rows)


def _makespans(data: dict[str, Any]) -> Plain:
    rows = [
        (
            NAMES[name],
            str(data[name]["scenarios"]),
            *_three(data[name]["makespan_error"]),
            f"{data[name]['rank_correlation']:.4f}",
        )
        for name in _sets(data)
    ]
    return Plain("Makespans, order of ends", ("set", "n", "median", "p90", "p95", "rank correlation"), rows)


def _networks(data: dict[str, Any]) -> Plain:
    figures = data.get(MODEL_PAIRS, {})
    rows = [(label, str(figures["n"]), *_three(figures[key])) for key, label in SIDES.items() if key in figures]
    return Plain("Slowdown of pairs of networks", ("side", "pairs", "median", "p90", "p95"), rows)


def _each_pair(data: dict[str, Any]) -> Plain:
    rows = []
    for pair in data.get(MODEL_PAIRS, {}).get("each", []):
        sides = (pair[side][key] for side in ("foreground", "background") for key in ("predicted", "measured", "error"))
        cells = (f"{v:+.1%}" if i % 3 == 2 else f"{v:.2f}" for i, v in enumerate(sides))
        rows.append((f"{pair['fg']} beside {pair['bg']}", pair["mode"], *cells))
    columns = (f"{side} {what}" for side in ("fg", "bg") for what in ("predicted", "measured", "error"))
    return Plain(EVERY_PAIR, ("foreground beside background", "mode", *columns), rows)


def _halves(data: dict[str, Any]) -> Plain:
    rows = []
    for name, half in itertools.product(_sets(data), ("even", "odd")):
        figures = data[name]["halves"][half]
        if figures is not None:
            ends = figures["reproducible_end_error"]
            makespan = percent(figures["makespan_error"]["median"])
            rows.append((NAMES[name], half, str(figures["n_reproducible"]), *_three(ends)[:2], makespan))
    heads = ("set", "scenarios", "reproducible", "end median", "end p90", "makespan median")
    return Plain("Even and odd scenarios", heads, rows)


def _ablation(data: dict[str, Any]) -> Plain:
    sets = _sets(data)
    heads = ("without", *(f"{NAMES[name]} {what}" for name in sets for what in ("median", "p90", "makespan")))
    rows = []
    for label, found in data.get("ablation", {}).get("without", {}).items():
        figures = (found[name][key] for name in sets for key in ("median", "p90", "makespan_median"))
        rows.append((label, *("–" if value is None else percent(value) for value in figures)))
    return Plain(WITHOUT_ONE, heads, rows)


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
    """Everything for the terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = []
    for plain in all_tables(data):
        if plain.title == EVERY_PAIR:  # long, and on the pages
            continue
        parts.append(f"\n[bold]{plain.title}[/bold]")
        table = Table(box=None, header_style="dim", padding=(0, 1), pad_edge=False)
        for i, head in enumerate(plain.heads):
            side: Any = "right" if i and _numeric(plain, i) else "left"
            # Left to itself, a wide table would cut words to keep other headings on one line.
            table.add_column(head.replace(" ", "\n") if len(plain.heads) > 8 else head, justify=side)
        for row in plain.rows:
            table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
        parts.append(table)
    return Group(*parts)


_STYLES = {"holds": "green", "off": "red"}


def markdown_table(plain: Plain) -> str:
    """A table in Markdown, without its title."""
    ruler = ("---:" if i and _numeric(plain, i) else "---" for i in range(len(plain.heads)))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (plain.heads, tuple(ruler), *plain.rows)) + "\n"


def html_table(plain: Plain) -> str:
    """A table in HTML, without its title."""
    head = "".join(f'<th scope="col"{_side(plain, i)}>{escape(h)}</th>' for i, h in enumerate(plain.heads))
    body = "".join(f"<tr>{_html_cells(plain, row)}</tr>" for row in plain.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_cells(plain: Plain, row: Sequence[str]) -> str:
    first = f'<th scope="row">{escape(row[0])}</th>'
    shown = {"holds": "<b>holds</b>", "off": '<span class="off">off</span>'}
    rest = (f"<td{_side(plain, i)}>{shown.get(cell, escape(cell))}</td>" for i, cell in enumerate(row[1:], start=1))
    return first + "".join(rest)


def _side(plain: Plain, column: int) -> str:
    return "" if column == 0 or _numeric(plain, column) else ' class="text"'


def _numeric(plain: Plain, column: int) -> bool:
    return all(row[column].lstrip("+-")[:1].isdigit() or row[column] == "–" for row in plain.rows)
