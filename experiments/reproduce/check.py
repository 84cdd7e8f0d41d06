"""A reproduced figure beside the recorded or published one, and what follows from a list of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpusched_env import __version__
from gpusched_env.experiments.lib.files import result_file


@dataclass(frozen=True, slots=True)
class Check:
    """One figure: simulated, recorded, and how far apart they may lie."""

    group: str
    what: str
    unit: str
    simulated: float
    recorded: float
    tolerance: float
    """Largest relative error that holds."""

    @property
    def error(self) -> float:
        """Relative error, signed."""
        return self.simulated / self.recorded - 1.0

    @property
    def holds(self) -> bool:
        return abs(self.error) <= self.tolerance


def summary_line(name: str, checks: Sequence[Check]) -> str:
    """One line that sums up: how many hold, and the largest error."""
    failed = [check for check in checks if not check.holds]
    worst = max(checks, key=lambda check: abs(check.error) / check.tolerance)
    verdict = "OK" if not failed else "FAILED"
    return (
        f"{verdict}: {name}: {len(checks) - len(failed)} of {len(checks)} figures within tolerance; "
        f"worst {worst.group}, {worst.what}: {worst.error:+.1%} (tolerance {worst.tolerance:.0%})"
    )


def checks_table(checks: Sequence[Check]) -> Any:
    """The checks for the terminal: a rich table a group."""
    from rich.console import Group
    from rich.table import Table

    width = max(len(check.what) for check in checks)
    parts: list[Any] = []
    for group, members in itertools.groupby(checks, key=lambda check: check.group):
        parts.append(f"[bold]{group[0].upper()}{group[1:]}[/bold]")
        table = Table(box=None, header_style="dim", padding=(0, 2))
        table.add_column("figure", min_width=width)
        for heading in ("simulated", "recorded", "error", "tolerance"):
            table.add_column(heading, justify="right", min_width=11)
        table.add_column("")
        for check in members:
            table.add_row(
                check.what,
                f"{check.simulated:,.4g} {check.unit}",
                f"{check.recorded:,.4g} {check.unit}",
                f"{check.error:+.1%}",
                f"{check.tolerance:.0%}",
                "[green]holds[/green]" if check.holds else "[red]off[/red]",
            )
        parts.append(table)
    return Group(*parts)


def write_checks(path: Path, name: str, checks: Sequence[Check]) -> None:
    """Write the checks as JSON."""
    rows = [{**asdict(check), "error": check.error, "holds": check.holds} for check in checks]
    data = {"schema": 1, "name": name, "version": __version__, "holds": all(c.holds for c in checks), "checks": rows}
    with result_file(path, "--json") as staging:
        staging.write_text(json.dumps(data, indent=1) + "\n")


def checks_markdown(checks: Sequence[Check]) -> str:
    """The checks as Markdown tables, one a group."""
    lines: list[str] = []
    for group, members in itertools.groupby(checks, key=lambda check: check.group):
        lines += ["", f"## {group[0].upper()}{group[1:]}", ""]
        lines += ["| figure | simulated | recorded | error | tolerance | holds |", "|---|---:|---:|---:|---:|---|"]
        lines += [
            f"| {check.what} | {check.simulated:.4g} {check.unit} | {check.recorded:.4g} {check.unit} "
            f"| {check.error:+.1%} | {check.tolerance:.0%} | {'yes' if check.holds else '**no**'} |"
            for check in members
        ]
    return "\n".join(lines).strip() + "\n"
