"""The reproduction as tables: for the terminal and as a Markdown page."""

from __future__ import annotations

import statistics
from typing import Any

from gpusched_env.display.table import Table, printed
from gpusched_env.experiments.reproduce.fikit import setting
from gpusched_env.experiments.reproduce.fikit.drivers import drivers, outsiders
from gpusched_env.experiments.reproduce.fikit.headline import MOST_ABOVE, OVERHEAD, distribution
from gpusched_env.experiments.reproduce.fikit.pairs import Pair
from gpusched_env.experiments.reproduce.fikit.reproduction import Reproduction
from gpusched_env.experiments.reproduce.fikit.setting import GPU
from gpusched_env.hardware.specs import load_gpu

NONE = "–"
PREMISE = "waits in mid-network beside a busy GPU"


def headline_table(result: Reproduction) -> Table:
    """The paper's figures beside ours."""
    rows = []
    for target in result.targets:
        published = f"{target.low:g} to {target.high:g}" if target.low else f"below {target.high:g}"
        difference = f"{target.difference:+.3g}" if target.difference else "inside"
        verdict = "holds" if target.holds else "off"
        rows.append((target.what, published, f"{target.ours:.3g}", difference, verdict, target.note))
    heads = ("figure", "published", "ours", "difference", "verdict", "at")
    return Table(f"Headline figures, {GPU}", heads, rows)


def distribution_table(result: Reproduction) -> Table:
    """How the speed-ups are distributed: all pairs, and those of the paper's premise, on each GPU."""
    rows = []
    for gpu in result.gpus:
        pairs = result.runs.pairs(gpu)
        for what, some in (("all pairs", pairs), (PREMISE, _premise(pairs))):
            if not some:
                continue
            d = distribution([pair.speedup for pair in some])
            quartiles = (d.smallest, d.quartile, d.median, d.upper_quartile, d.largest)
            slowest = max(pair.slowdown for pair in some)
            cells = (
                f"{d.pairs}",
                *(f"{q:.2f}" for q in quartiles),
                f"{d.above:.0%}",
                f"{d.inside:.0%}",
                f"{slowest:.3f}",
            )
            rows.append((gpu, what, *cells))
    heads = ("GPU", "", "pairs", "least", "quarter", "median", "3 quarters", "most")
    return Table("High-priority speed-up", (*heads, f"> {MOST_ABOVE}", "in range", "FIKIT / alone"), rows)


def modes_table(result: Reproduction) -> Table:
    """What else was run: the median over all pairs."""
    runs = result.runs
    rows = []
    for gpu in result.gpus:
        pairs = runs.pairs(gpu)
        alone = statistics.median(pair.default.high_us / pair.high.alone_us for pair in pairs)
        mps = statistics.median(pair.default.high_us / pair.under_mps.high_us for pair in pairs)
        filled = [(pair.fikit.low_share, pair.under_mps.low_share) for pair in pairs]
        shares = " and ".join(f"{statistics.fmean(share):.1%}" for share in zip(*filled, strict=True))
        exclusive, ratios = runs.exclusive(gpu), list(runs.low_ratios(gpu).values())
        rows += [
            (gpu, "default sharing over alone, high priority, median", f"{alone:.2f}"),
            (gpu, "default sharing over FIKIT under MPS, high priority, median", f"{mps:.2f}"),
            (gpu, "low priority's work in the gaps, share of the time: FIKIT and under MPS, mean", shares),
        ]
        if exclusive:
            text = f"{statistics.median(exclusive):.2f} and {max(exclusive):.1f}"
            rows.append((gpu, "exclusive over FIKIT, high priority, median and most", text))
        if ratios:
            rows.append(
                (
                    gpu,
                    "default sharing over FIKIT, low priority, intermittent, median",
                    f"{statistics.median(ratios):.2f}",
                )
            )
    return Table("Other modes", ("GPU", "completion time", ""), rows)


def networks_table(result: Reproduction, gpu: str) -> Table:
    """The services by themselves."""
    rows = [
        (
            n.name,
            f"{n.alone_us / 1e3:.2f}",
            f"{n.kernels}",
            f"{n.waits}",
            f"{n.waits_per_ms:.2f}",
            f"{n.gap_share:.0%}",
            f"{n.overhead:.2%}",
            f"{n.measuring:.2f}",
        )
        for n in result.runs.networks(gpu)
    ]
    heads = ("network", "alone ms", "kernels", "waits", "per ms", "gaps", "overhead", "measuring")
    return Table(f"Networks alone, {gpu}", heads, rows)


def drivers_table(result: Reproduction) -> Table:
    """Rank correlations of the speed-up, on each GPU."""
    found = {gpu: drivers(result.runs.pairs(gpu)) for gpu in result.gpus}
    rows = []
    for row in zip(*found.values(), strict=True):
        cells = [text for driver in row for text in (f"{driver.overall:+.2f}", f"{driver.partner_fixed:+.2f}")]
        rows.append((f"{row[0].side} priority", row[0].feature, *cells))
    heads = [text for gpu in found for text in (gpu, "partner fixed")]
    return Table("What the speed-up goes with (rank correlation)", ("of", "property", *heads), rows)


def slices_table(result: Reproduction) -> Table:
    """Speed-ups under other time slices."""
    found = result.runs.by_slice(GPU)
    if not found:
        return Table("Time slice", ("slice ms", "median"), [])
    pairs = {(p.high.name, p.low.name): p for p in result.runs.pairs(GPU)}
    found[load_gpu(GPU).timing.slice_us] = {names: pair.speedup for names, pair in pairs.items()}
    rows = []
    for slice_us, speedups in sorted(found.items()):
        premise = [speedup for names, speedup in speedups.items() if pairs[names].as_in_the_paper]
        for what, some in (("all pairs", list(speedups.values())), (PREMISE, premise)):
            if some:
                d = distribution(some)
                spread = (f"{value:.2f}" for value in (d.smallest, d.median, d.largest))
                shares = (f"{share:.0%}" for share in (d.above, d.inside))
                rows.append((f"{slice_us / 1e3:g}", what, str(d.pairs), *spread, *shares))
    heads = ("slice ms", "", "pairs", "least", "median", "most", f"> {MOST_ABOVE}", "in range")
    return Table("Time slice", heads, rows)


def outside_table(result: Reproduction, gpu: str) -> Table:
    """Pairs outside the published range, and why."""
    rows = [(o.high, o.low, f"{o.speedup:.2f}", o.reason) for o in outsiders(result.runs.pairs(gpu))]
    return Table(f"Pairs outside the published range, {gpu}", ("high", "low", "speed-up", "why"), rows)


def matrix_table(result: Reproduction, gpu: str) -> Table:
    """Every speed-up: a row a high-priority network."""
    by_name = {(pair.high.name, pair.low.name): pair.speedup for pair in result.runs.pairs(gpu)}
    names = [n.name for n in result.runs.networks(gpu)]
    rows = [
        (high, *(f"{by_name[high, low]:.2f}" if (high, low) in by_name else NONE for low in names)) for high in names
    ]
    return Table(f"Speed-up of every pair, {gpu}", ("high \\ low", *names), rows)


def losses_table(result: Reproduction) -> Table:
    """Wrong profiles."""
    rows = [(loss.case, f"{loss.high:.3f}", f"{loss.low:.2f}") for loss in result.losses]
    return Table("Wrong profiles", ("FIKIT knows", "high: time", "low: work in gaps"), rows)


def thresholds_table(result: Reproduction) -> Table:
    """Which gaps are worth filling."""
    rows = [
        (f"{t.epsilon_us:g}", *(text for i in (0, 1) for text in (f"{t.high[i]:.3f}", f"{t.low[i]:.1%}")))
        for t in result.thresholds
    ]
    heads = ("threshold us", "MPS: high / alone", "low in gaps", "processes: high / alone", "low in gaps")
    return Table("Threshold of gaps that are filled", heads, rows)


def interception_table(result: Reproduction) -> Table:
    """How dear interception may be."""
    found = {gpu: result.runs.overheads(gpu) for gpu in result.gpus}
    costs = found[GPU]
    rows = [(f"{cost_us:g}", *(f"{found[gpu][cost_us]:.2%}" for gpu in found)) for cost_us in costs]
    return Table("Interception: largest overhead of a service alone", ("us a launch", *found), rows)


def sliced_table(result: Reproduction) -> Table:
    """Default sharing as measured on an H100."""
    rows = []
    for pair in result.sliced:
        sides = zip(pair.simulated, pair.recorded, pair.errors, strict=True)
        cells = [text for ours, theirs, error in sides for text in (f"{ours:.2f}", f"{theirs:.2f}", f"{error:+.0%}")]
        rows.append((" and ".join(pair.networks), *cells))
    heads = ("simulated", "recorded", "error") * 2
    return Table("Time slicing: slowdown of the first and of the second network", ("pair", *heads), rows)


def terminal(result: Reproduction) -> Any:
    """What the command prints."""
    plains = [
        sliced_table(result),
        networks_table(result, GPU),
        modes_table(result),
        drivers_table(result),
        slices_table(result),
        outside_table(result, GPU),
        losses_table(result),
        thresholds_table(result),
        interception_table(result),
        distribution_table(result),
        headline_table(result),
    ]
    return printed(plains)


def markdown(result: Reproduction) -> str:
    """The whole page."""
    lines = ["# FIKIT", "", "Written by `gpusched reproduce fikit --docs`.", ""]
    lines += [_paragraph(setting.__doc__), "", f"{result.summary_line()}.", ""]
    lines += [
        "Ours may exceed the published ranges by 10 % (speed-ups) and 0.1 (ratio): the pairs are not the paper's; "
        f"and the overhead must stay below {OVERHEAD:.0%}. Speed-up: completion time under default sharing over that "
        "under FIKIT; the low-priority ratio too, with high-priority requests that come now and then. "
        "*In mid-network*: the high-priority network waits for the GPU more often than its answer takes, and the "
        "low-priority one leaves the GPU idle for less than a tenth of its time alone.",
        "",
    ]
    shown = [headline_table(result), distribution_table(result), modes_table(result)]
    shown += [drivers_table(result), slices_table(result)]
    for gpu in result.gpus:
        shown += [networks_table(result, gpu), matrix_table(result, gpu)]
    shown += [outside_table(result, GPU), losses_table(result), thresholds_table(result)]
    shown += [interception_table(result), sliced_table(result)]
    for plain in shown:
        if plain.rows:
            lines += [f"## {plain.title}", "", *_remark(plain, result), plain.markdown()]
    return "\n".join(lines).rstrip() + "\n"


def _remark(plain: Table, result: Reproduction) -> list[str]:
    if plain.title.startswith("Time slicing"):
        median, worst = result.sliced_errors
        text = f"Relative errors: median {median:.0%}, largest {worst:.0%}. Recorded on an H100 with a slower host, to "
        return [text + "which host times were scaled (see data/README.md).", ""]
    if plain.title.startswith("Threshold"):
        text = "Services without a pause on the GPU of the recordings, under MPS and as processes. Between processes, "
        return [text + "filling a gap costs a context switch there and back.", ""]
    if plain.title.startswith("Wrong profiles"):
        text = "Relative to right profiles; services without a pause on the GPU of the recordings, under MPS. "
        return [
            text + "*Never measured*: neither duration nor gap is known, as for a kernel seen first when sharing.",
            "",
        ]
    if plain.title.startswith("Networks alone"):
        return [
            "*Waits*: synchronisations a job. *Gaps*: share of the time without a kernel. *Overhead*: of interception. "
            "*Measuring*: completion time with one kernel at a time over that alone.",
            "",
        ]
    return []


def _premise(pairs: list[Pair]) -> list[Pair]:
    return [pair for pair in pairs if pair.as_in_the_paper]


def _paragraph(text: str | None) -> str:
    return "\n".join(line for line in (text or "").splitlines()[2:] if line).replace("``", "`")
