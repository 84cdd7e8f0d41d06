"""A first look: a problem that can be solved by hand, then eight schedulers that tell what sharing a GPU is about."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import ResultFolder
from gpusched_env.experiments.lib.options import command_line
from gpusched_env.experiments.lib.terminal import output_console, progress_bar
from gpusched_env.experiments.report.save import write_results
from gpusched_env.experiments.report.tables import whole_gpu_table

SCENARIO: Final = "InferenceBesideTraining"
STORY: Final = {
    "pass-through": "the plain GPU: every kernel goes to its stream at once",
    "priority-streams": "the plain GPU, with the urgent tenant's streams first",
    "mps": "a process a tenant under MPS",
    "exclusive": "one tenant at a time: what is lost without sharing",
    "orion": "published: trains beside inference only where they use different resources",
    "reef": "published: kills training kernels when inference comes",
    "lithos": "published: SMs owned by tenants, idle ones lent",
    "learned": "the trained agent that comes with the package",
}
"""What is compared, and what each is. The first is what the others are compared with."""
BAR: Final = 28
"""Characters of the longest bar."""


def show_example() -> None:
    """Two jobs that everybody can follow."""
    console = output_console()
    toy = compare("Toy", ["pass-through", "sjf"], seeds=1, workers=1)
    first, better = (toy.interval(name, "cost").mean for name in toy.schedulers)
    console.print("[bold]A problem to solve by hand[/bold]: a long batch job and a short urgent one arrive together.")
    console.print(whole_gpu_table(toy))
    less = f"{100 * (1 - better / first):.0f} %"
    console.print(f"Launching the shorter job first costs {less} less. That is what schedulers decide.\n")


def show_story(seeds: int, out: Path) -> Comparison:
    """Play :data:`STORY`, print a figure, a table and a sentence, and write the report.

    Args:
        seeds: how many.
        out: folder of the results; files of an earlier demo are replaced.

    Raises:
        InputError: ``out`` cannot be written.
    """
    console, began = output_console(), time.monotonic()
    stages = Console(stderr=True)
    with ResultFolder(out, overwrite=True) as results:
        stages.print(f"{SCENARIO}: {len(STORY)} schedulers, {seeds} seeds")
        with progress_bar(len(STORY) * seeds) as on_progress:
            comparison = compare(
                SCENARIO, list(STORY), seeds, record="blocks", on_progress=on_progress, command=command_line()
            )
        console.print(f"[bold]{SCENARIO}[/bold]: an inference service with an objective of its own beside training.")
        costs = {name: comparison.interval(name, "cost").mean for name in comparison.schedulers}
        console.print(bars(costs, comparison.label))
        console.print(whole_gpu_table(comparison))
        console.print(sentence(comparison))
        stages.print("Writing the report")
        write_results(comparison, results.staging)
        results.publish()
    console.print(f"Report: {out / 'report.html'} (open it in a browser). Took {time.monotonic() - began:.0f} s.")
    console.print(f"All schedulers: gpusched compare {SCENARIO} --schedulers all")
    return comparison


def bars(costs: Mapping[str, float], label: Callable[[str], str]) -> Table:
    """A bar a scheduler, the least first, with what each is.

    One far off is cut, since it would leave nothing to see of the others.
    """
    longest = min(max(costs.values()), 3.0 * sorted(costs.values())[len(costs) // 2])
    table = Table(box=None, padding=(0, 1), title="Cost, less is better", title_justify="left")
    table.add_column("scheduler")
    table.add_column("")
    table.add_column("cost", justify="right")
    table.add_column("")
    for name in sorted(costs, key=costs.__getitem__):
        length = max(1, round(BAR * min(costs[name], longest) / longest))
        bar = Text("█" * length + ("▶" if costs[name] > longest else ""), style="cyan")
        table.add_row(label(name), bar, f"{costs[name]:.2f}", STORY.get(name, ""))
    return table


def sentence(comparison: Comparison) -> str:
    """What is seen, by the figures."""
    plain, *others = comparison.schedulers
    if not others:
        return ""
    best = min(others, key=lambda name: comparison.interval(name, "cost").mean)
    worst = max(others, key=lambda name: comparison.interval(name, "cost").mean)
    parts = [f"{comparison.label(best)} costs least, {_difference(comparison, best)} of {plain}"]
    if worst != best:
        parts.append(f"{comparison.label(worst)} most, {_difference(comparison, worst)} of {plain}")
    return f"What is seen: {'; '.join(parts)}."


def _difference(comparison: Comparison, scheduler: str) -> str:
    relative = comparison.difference(scheduler).relative.mean
    if not math.isfinite(relative):
        return "against a cost of nothing"
    return f"{100 * abs(relative):.0f} % {'below' if relative < 0 else 'above'} the cost"
