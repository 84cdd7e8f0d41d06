"""Figures that one page quotes from the tables of another, so that they agree to the digit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gpusched_env.agents.shipped import shipped_names
from gpusched_env.baselines.registry import scheduler_names
from gpusched_env.display.table import Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.trained import is_published

PAIRS: Final = "pairs in order"
VIDUR, ACCEL_SIM, SPARK = "Vidur", "Accel-Sim", "spark-sched-sim"


def rows(page: Path, head: str) -> Iterator[dict[str, str]]:
    """The rows, by their heads, of the tables of a Markdown page that have such a head."""
    for block in page.read_text(encoding="utf-8").split("\n\n"):
        lines = [line.strip("|").split(" | ") for line in block.splitlines() if line.startswith("|")]
        heads, *others = [[cell.strip() for cell in cells] for cells in lines] or [[]]
        if head in heads:
            yield from (dict(zip(heads, row, strict=True)) for row in others[1:])


def cell(page: Path, row: Sequence[str], head: str) -> str:
    """The cell below ``head`` of the first row that begins with the cells ``row``.

    Raises:
        InputError: there is no such row or head.
    """
    for found in rows(page, head):
        if list(found.values())[: len(row)] == list(row):
            return found[head]
    raise InputError(f"{page}: no table with a column {head!r} has a row that begins with {' | '.join(row)!r}")


def accuracy(docs: Path) -> Table:
    """How far simulation and hardware lie apart, on what no constant was fitted to."""
    cells = []
    for what, page in (("H200", "validation-drawn"), ("H100", "validation-unseen")):
        path, row = docs / f"{page}.md", ["all", "both"]
        n, median, p90 = (cell(path, row, head) for head in ("n", "median", "p90"))
        cells.append([f"slowdowns of {n} pairs of networks, {what}", median, p90, f"[page](docs/{page}.md)"])
    pairs = [row[PAIRS].split(" of ") for row in rows(docs / "real-gpu.md", PAIRS)]
    right, of = (sum(int(pair[number]) for pair in pairs) for number in (0, 1))
    what = f"the cheaper of {of:,} pairs of schedulers, on real GPUs"
    cells.append([what, f"{1 - right / of:.2%} wrong", "–", "[page](docs/real-gpu.md)"])
    return Table("", ["what was predicted", "error, median", "90th percentile", "evidence"], cells)


def peers(docs: Path) -> Table:
    """What this project has that others have not, and the other way round."""
    page = docs / "peers.md"
    ours, spark = (cell(page, [name], "steps/s") for name in ("gpusched_env", SPARK))
    error = cell(docs / "validation-drawn.md", ["all", "both"], "median") + " (slowdowns)"
    published = sum(map(is_published, scheduler_names()))
    agents = len(shipped_names())
    vidur = cell(page, [VIDUR], "error").replace("over the whole range", "(latency)")
    accel = cell(page, [ACCEL_SIM], "error").replace("the simulator that it extends", "GPGPU-Sim")
    return Table(
        "",
        ["", "gpusched_env", VIDUR, ACCEL_SIM, SPARK],
        [
            ["schedules", "kernels", "requests", "nothing", "stages"],
            ["decisions a second", ours, "–", "–", spark],
            ["error against hardware", error, vidur, accel, "–"],
            ["published schedulers", str(published), "5", "0", "1"],
            ["real GPU", "drives it", "profiles it", "traces it", "–"],
            ["trained agents", str(agents), "0", "0", "1"],
        ],
    )
