"""The tables of the page."""

from __future__ import annotations

import numpy as np

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.verdicts import table_of, table_of_numbers, targets_table
from gpusched_env.experiments.papers.fikit.figures import JUDGED_WITH, Figures
from gpusched_env.experiments.papers.fikit.pairs import MOST_ABOVE, SPEEDUP, distribution, distributions, drivers
from gpusched_env.experiments.papers.fikit.runs import DEFAULT, EXCLUSIVE, FIKIT, GPU, UNDER_MPS


def all_tables(figures: Figures) -> list[Table]:
    """In the order of the page."""
    return [
        co_runners_table(figures),
        targets_table(
            f"Headline figures, {GPU}, {JUDGED_WITH} low-priority services",
            [*figures.checks(), *figures.low_targets()[1]],
        ),
        speedups_table(figures),
        modes_table(figures),
        drivers_table(figures),
        slices_table(figures),
        *(networks_table(figures, gpu) for gpu in figures.by_gpu),
        *knowledge_tables(figures),
        table_of_numbers(
            "Interception: largest overhead of a service alone",
            ["us a launch"],
            figures.overheads().rename("{:g}".format),
            ".2%",
        ),
        turns_table(figures),
    ]


def speedups_table(figures: Figures) -> Table:
    """Of the high priority, by GPU."""
    return table_of(
        "High-priority speed-up",
        [{"gpu": gpu, **of} for gpu, pairs in figures.by_gpu.items() for of in distributions(pairs)],
        "GPU = {gpu} | = {what} | pairs = {pairs} | least = {smallest:.2f} | quarter = {quartile:.2f} "
        "| median = {median:.2f} | 3 quarters = {upper_quartile:.2f} | most = {largest:.2f} "
        f"| > {MOST_ABOVE} = {{above:.0%}} | in range = {{inside:.0%}} | FIKIT / alone = {{slowest:.3f}}",
    )


def slices_table(figures: Figures) -> Table:
    """The same by the length of a time slice."""
    return table_of(
        "Time slice",
        [
            {"ms": us / 1e3, **of}
            for us, pairs in figures.by_slice().items()
            for of in distributions(pairs, "judged pairs")
        ],
        "slice ms = {ms:g} | = {what} | pairs = {pairs} | least = {smallest:.2f} | median = {median:.2f} "
        f"| most = {{largest:.2f}} | > {MOST_ABOVE} = {{above:.0%}} | in range = {{inside:.0%}}",
    )


def knowledge_tables(figures: Figures) -> list[Table]:
    """What wrong profiles lose, and what the threshold of gaps decides."""
    return [
        table_of(
            "Wrong profiles",
            figures.losses(),
            "FIKIT knows = {case} | high: time = {high:.3f} | low: work in gaps = {low:.2f}",
            "Relative to right profiles; services without a pause on the GPU of the recordings, under MPS. "
            "*Never measured*: neither duration nor gap is known, as for a kernel seen first when sharing.",
        ),
        table_of(
            "Threshold of gaps that are filled",
            figures.thresholds(),
            "threshold us = {epsilon_us:g} | MPS: high / alone = {high[0]:.3f} | low in gaps = {low[0]:.1%} "
            "| processes: high / alone = {high[1]:.3f} | low in gaps = {low[1]:.1%}",
            "Services without a pause on the GPU of the recordings, under MPS and as processes. Between processes, "
            "filling a gap costs a context switch there and back.",
        ),
    ]


def turns_table(figures: Figures) -> Table:
    """Default sharing against recorded turns."""
    turns = figures.turns()
    errors = [abs(error) for pair in turns for error in pair["errors"]] or [0.0]
    return table_of(
        "Time slicing: slowdown of the first and of the second network",
        turns,
        "pair = {networks[0]} and {networks[1]} "
        "| simulated = {simulated[0]:.2f} | recorded = {recorded[0]:.2f} | error = {errors[0]:+z.0%} "
        "| simulated = {simulated[1]:.2f} | recorded = {recorded[1]:.2f} | error = {errors[1]:+z.0%}",
        f"Relative errors: median {np.median(errors):.0%}, largest {max(errors):.0%}. Recorded on an H100 with "
        "a slower host, to which host times were scaled (see data/README.md).",
    )


def co_runners_table(figures: Figures) -> Table:
    """The headline by the number of low-priority services."""
    rows = []
    for lows, pairs in figures.by_co_runners.items():
        for what, some in (("judged", pairs[pairs.judged]), ("all pairs", pairs)):
            if len(some):
                rows.append({"lows": lows, "what": what, **distribution(some)})
    return table_of(
        "Speed-up by the number of low-priority services",
        rows,
        "services = {lows} | = {what} | pairs = {pairs} | least = {smallest:.2f} | median = {median:.2f} "
        f"| most = {{largest:.2f}} | > {MOST_ABOVE} = {{above:.0%}} | in range = {{inside:.0%}}",
        f"Published: {SPEEDUP[0]} to {SPEEDUP[1]}, more than half above {MOST_ABOVE}; how many services shared the "
        "GPU, and which networks, is not known. Dots are pairs, lines medians.\n\n"
        "![Speed-ups by the number of low-priority services](fikit-speedups.svg)",
    )


def modes_table(figures: Figures) -> Table:
    """What else was run."""
    rows = []
    for gpu, pairs in figures.by_gpu.items():
        base, gaps = pairs[DEFAULT], pairs[[f"low_share: {mode}" for mode in (FIKIT, UNDER_MPS)]].mean()
        found = {
            "default sharing over alone, high priority, median": f"{(base / pairs.high_alone_us).median():.2f}",
            "default sharing over FIKIT under MPS, high priority, median": (
                f"{(base / pairs[UNDER_MPS]).median():.2f}"
            ),
            "low priority's work in the gaps, share of the time: FIKIT and under MPS, mean": (
                " and ".join(f"{share:.1%}" for share in gaps)
            ),
        }
        if gpu == GPU:
            exclusive = pairs[EXCLUSIVE] / pairs[FIKIT]
            found |= {
                "exclusive over FIKIT, high priority, median and most": (
                    f"{exclusive.median():.2f} and {exclusive.max():.1f}"
                ),
                "default sharing over FIKIT, low priority, intermittent, median": f"{figures.low_ratios.median():.2f}",
            }
        rows += [(gpu, what, text) for what, text in found.items()]
    return Table("Other modes", ("GPU", "completion time", ""), rows)


def drivers_table(figures: Figures) -> Table:
    found = [drivers(of).set_index(["side", "feature"]).add_suffix(gpu) for gpu, of in figures.by_gpu.items()]
    values = found[0].join(found[1:]).rename("{} priority".format, level="side")
    heads = ("of", "property", *(head for gpu in figures.by_gpu for head in (gpu, "partner fixed")))
    return table_of_numbers("What the speed-up goes with (rank correlation)", heads, values, "+z.2f")


def networks_table(figures: Figures, gpu: str) -> Table:
    """Services alone."""
    alone = figures.networks.loc[gpu]
    return table_of(
        f"Networks alone, {gpu}",
        alone.assign(alone_ms=alone.alone_us / 1e3),
        "network = {high} | alone ms = {alone_ms:.2f} | kernels = {kernels} | waits = {waits} "
        "| per ms = {waits_per_ms:.2f} | gaps = {gap_share:.0%} | overhead = {overhead:.2%} "
        "| measuring = {measuring:.2f}",
        "*Waits*: synchronisations a job. *Gaps*: share of the time without a kernel. *Overhead*: of "
        "interception. *Measuring*: completion time with one kernel at a time over that alone.",
    )
