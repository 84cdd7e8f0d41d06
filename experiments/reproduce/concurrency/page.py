"""The reproduction as tables: for the terminal and as a Markdown page."""

from __future__ import annotations

from typing import Any

from gpusched_env.display.table import Table, printed
from gpusched_env.experiments.reproduce.concurrency import on_hardware, setting
from gpusched_env.experiments.reproduce.concurrency.model_pairs import LIMIT, Side
from gpusched_env.experiments.reproduce.concurrency.observations import Finding, percent
from gpusched_env.experiments.reproduce.concurrency.published import Compared
from gpusched_env.experiments.reproduce.concurrency.reproduction import Reproduction
from gpusched_env.experiments.reproduce.concurrency.runs import PAPERS, Runs, Setting

VERDICTS = {True: "holds", False: "contradicted", None: "not scored"}
NONE = "–"


def observations_table(found: list[Finding]) -> Table:
    """The numbered observations."""
    rows = [
        (
            f.observation,
            f.claim or NONE,
            VERDICTS[f.holds],
            f"{f.agree} of {f.settings}" if f.settings else NONE,
            ". ".join(part for part in (f.evidence, f.note) if part),
        )
        for f in found
    ]
    return Table("Observations", ("", "claim", "verdict", "settings", "figures"), rows)


def published_table(rows: list[Compared]) -> Table:
    """Published figures beside ours."""
    cells = [
        (
            row.what,
            f"{row.published:g} {row.unit}",
            NONE if row.ours is None else f"{row.ours:.0f} {row.unit}",
            NONE if row.difference is None else f"{row.difference:+.0f} {'points' if row.unit == '%' else row.unit}",
            row.note,
        )
        for row in rows
    ]
    return Table("Published figures", ("figure", "published", "simulated", "difference", "remark"), cells)


def mechanisms_table(runs: Runs, where: Setting) -> Table:
    """Every mechanism in one setting."""
    rows = []
    for name in setting.MECHANISMS:
        outcome = runs.outcome(where, name)
        f = outcome.figures
        rows.append(
            (
                name,
                f"{f.turnaround_us / 1e3:.2f}",
                percent(outcome.slowdown),
                f"{f.turnaround_p99_us / 1e3:.2f}",
                f"{f.variation:.2f}",
                f"{outcome.speed:.2f}",
                f"{outcome.progress:.2f}",
                f"{f.utilisation:.0%}",
                f"{f.preemptions:.1f}",
            )
        )
    heads = ("mechanism", "mean ms", "added", "p99 ms", "dev/mean", "training", "progress", "SMs", "saves")
    return Table(f"{where}: alone {runs.alone(where).turnaround_us / 1e3:.2f} ms", heads, rows)


def hardware_table() -> Table:
    """The mechanisms as recorded on an H100."""
    rows = []
    for mine in on_hardware.recorded():
        slowed = (f"{mine.slowdown[m]:.2f}" if m in mine.slowdown else NONE for m in on_hardware.MODES)
        longer = (f"{mine.training[m]:.2f}" if m in mine.training else NONE for m in on_hardware.MODES[:-1])
        rows.append((mine.inference, mine.form, str(mine.batch), f"{mine.alone_us / 1e3:.2f}", *slowed, *longer))
    training = (f"training, {mode}" for mode in on_hardware.MODES[:-1])
    heads = ("inference", "launches", "batch", "alone ms", *on_hardware.MODES, *training)
    return Table("The mechanisms on a real H100", heads, rows)


def sides_table(found: list[Side]) -> Table:
    """Recorded pairs, side by side."""
    rows = [
        (
            s.pair,
            s.mode,
            s.side,
            f"{s.simulated:.2f}",
            f"{s.recorded:.2f}",
            f"{s.error:+.1%}",
            "holds" if s.holds else "off",
            s.cause,
        )
        for s in found
    ]
    heads = ("pair", "mode", "side", "simulated", "recorded", "error", f"within {LIMIT:.0%}", "remark")
    return Table("Recorded pairs of networks", heads, rows)


def modes_table(found: list[Side]) -> Table:
    """How many sides are within the limit, by launch mode."""
    rows = []
    for mode, side in sorted({(s.mode, s.side) for s in found}, reverse=True):
        own = [s for s in found if (s.mode, s.side) == (mode, side)]
        held = sum(s.holds for s in own)
        rows.append((f"{mode}, {side}", f"{held} of {len(own)}", f"{max(abs(s.error) for s in own):.1%}"))
    return Table("Sides within the limit", ("mode", "within", "largest error"), rows)


def terminal(result: Reproduction) -> Any:
    """What the command prints: the paper's setting, all verdicts, and the sides beyond the limit."""
    beyond = sides_table([s for s in result.sides if not s.holds])
    plains = [
        *(mechanisms_table(result.runs, where) for where in result.runs.settings if where.arrivals == "sequential"),
        observations_table(result.findings),
        published_table(result.published),
        modes_table(result.sides),
        Table("Sides beyond the limit", beyond.heads, beyond.rows),
    ]
    return printed(plains)


def markdown(result: Reproduction) -> str:
    """The whole page."""
    lines = ["# NVIDIA's sharing mechanisms", "", "Written by `gpusched reproduce concurrency --docs`.", ""]
    lines += [_paragraph(setting.__doc__), "", f"{result.summary_line()}.", ""]
    lines += [
        f"Claims are judged in the paper's own setting ({PAPERS}); *settings* counts those in which the sign is the "
        "same, of all pairs, arrivals and GPUs. *Added*: mean turnaround over that alone. *dev/mean*: standard "
        "deviation of turnarounds over their mean. *Training*: speed, 1 alone. *Progress*: the sum of both tasks'. "
        "*Saves*: preemptions a request. A mechanism under which a task never completes anything has no figure (nan).",
        "",
    ]
    for plain in (observations_table(result.findings), published_table(result.published)):
        lines += [f"## {plain.title}", "", plain.markdown()]
    hardware = hardware_table()
    lines += [f"## {hardware.title}", "", _paragraph(on_hardware.__doc__), ""]
    lines += ["Turnaround of requests and time of a training step, each over that alone.", "", hardware.markdown()]
    lines += ["## Runs", ""]
    for where in result.runs.settings:
        plain = mechanisms_table(result.runs, where)
        lines += [f"### {plain.title}", "", plain.markdown()]
    modes, every = modes_table(result.sides), sides_table(result.sides)
    lines += [f"## {modes.title}", "", modes.markdown(), f"## {every.title}", "", every.markdown()]
    return "\n".join(lines).rstrip() + "\n"


def _paragraph(text: str | None) -> str:
    return "\n".join(line for line in (text or "").splitlines()[2:] if line).replace("``", "`")
