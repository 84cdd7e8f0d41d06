"""The figures of ``gpusched bench`` as a table and as a page of the documentation."""

from __future__ import annotations

from typing import Any

from rich.table import Table

BASES = {
    "wall": "Verdicts go by wall time.",
    "cpu": (
        "The machine was busy with other work, so verdicts go by the processor time of the calling thread: with two "
        "threads, which share the work as they come, about the wall time on a free machine."
    ),
}
HEADS = ("figure", "by wall time", "by processor time", "target", "")

PAGE = """\
# Performance

Written by `gpusched bench --docs`. One process measured everything in turns on {processor}, {cores} cores, with \
Python {python}, NumPy {numpy}, Numba {numba} and Gymnasium {gymnasium}; figures are medians over {rounds} rounds, \
ratios medians of the rounds' ratios. {basis}

{table}
- *Environments*: `InferenceBesideTraining` on an H100 with random legal actions. A decision is one action; the \
environment never returns where there is nothing to choose. Actions are drawn outside the stopwatch. The vector \
environment is measured in the middle of its episodes, the single one over a whole episode with its reset.
- *CartPole* is Gymnasium's, in the same process, with random actions and its resets.
- *MaskablePPO*: {learners} copies, rollouts of 64 steps, otherwise the defaults of sb3-contrib. The null environment \
has the same spaces and masks and does nothing.
- *Learned policy*: the rule that `cma-es` searches, and the slot network of `maskable-ppo`, as exported, on one \
core. From view to command: what a scheduler does in Python besides, the view's tables being there. In torch: one \
observation at a time through `predict`.
- *Kernels, SMs, tenants*: time of a decision, which is the launch of a kernel, on the compiled device. Tenants launch \
two kernels in turn whose blocks have different shapes. Where many grids of different shapes share the SMs, hardly two \
SMs hold the same and every block counts.
- *First use*: a fresh process with an empty cache imports, makes, resets and steps a single and a vector environment.
"""


def figure(value: float, unit: str) -> str:
    """A number with three digits at least, and its unit."""
    number = f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"
    return f"{number} {unit}".strip()


def cells(row: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """A row of the table, as :data:`HEADS` says."""
    target = ""
    if row["target"] is not None:
        target = f"{'≥' if row['at_least'] else '≤'} {figure(row['target'], '')}"
    if row["aim"] is not None:
        target += f" (aim {figure(row['aim'], '')})"
    verdict = {True: "holds", False: "misses", None: ""}[row["holds"]]
    return row["what"], figure(row["wall"], row["unit"]), figure(row["cpu"], row["unit"]), target, verdict


def table(data: dict[str, Any]) -> Table:
    """The figures of :func:`~gpusched_env.experiments.benchmarks.suite.results_dict` for the terminal."""
    found = Table(*HEADS, title="gpusched bench", caption=BASES[data["basis"]], caption_justify="left")
    for column in (1, 2, 3):
        found.columns[column].justify = "right"
    for row in data["rows"]:
        found.add_row(*cells(row))
    return found


def page(data: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = ["| " + " | ".join(HEADS) + " |", "| --- | ---: | ---: | ---: | --- |"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in data["rows"]]
    versions = {name: data["versions"].get(name, "?") for name in ("python", "numpy", "numba", "gymnasium")}
    return PAGE.format(
        table="\n".join(lines) + "\n",
        basis=BASES[data["basis"]],
        rounds=data["sizes"]["rounds"],
        learners=data["sizes"]["learners"],
        **{name: data["machine"][name] for name in ("processor", "cores")},
        **versions,
    )
