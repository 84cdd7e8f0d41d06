"""The tables of the page, and its first sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.verdicts import table_of, table_of_numbers
from gpusched_env.experiments.papers.fikit.figures import FikitFigures
from gpusched_env.experiments.papers.fikit.pairs import MOST_ABOVE, SPEEDUP, distribution, distributions, drivers
from gpusched_env.experiments.papers.fikit.runs import (
    DEFAULT,
    ENDS,
    EXCLUSIVE,
    FIKIT,
    GPU,
    MPS,
    PROCESSES,
    SETTINGS,
    SHARED_NOW_AND_THEN,
    UNDER_MPS,
)

if TYPE_CHECKING:
    from gpusched_env.experiments.papers.fikit.figures import FikitFigures


FAMILIES = "of the paper's families"
CLAIMS_NOTE = (
    "*Shown*: it comes out, and no longer where the mechanism is switched off. *Not shown*: it comes out either way, "
    "so that it says nothing of the mechanism. *Off*: it does not come out. Without a published figure the criterion "
    "is our own; where one is published, what stands under *comes out if* says how it is applied to pairs that are not "
    "the paper's. The cost of an interception is an assumption, and its control shows no more than that the claim can "
    "fail."
)
CO_RUNNERS_NOTE = (
    f"Published: {SPEEDUP[0]} to {SPEEDUP[1]}, more than half above {MOST_ABOVE}; how many services shared the GPU, "
    "and which networks, is not known. *All* pairs are judged; those of networks that the paper is not remembered to "
    "use, or that wait without end, are set apart beside it. *Spanned*: share of the published range, on a logarithmic "
    "scale, between the 5 % and the 95 % quantile. N services beside one are N + 1 contexts that share time slices: a "
    "service that always has work then takes N + 1 times its time alone, whatever FIKIT does. Dots are pairs, lines "
    "medians.\n\n![Speed-ups by the number of low-priority services](fikit-speedups.svg)"
)
FILLING_NOTE = (
    "One low-priority service. *Gaps*: the time in which no kernel of the high-priority service runs. The completion "
    "times beside intermittent requests are what a low-priority service gains: under default sharing it runs in every "
    "gap, under FIKIT in those that its kernels fit into, and with nothing filled in none."
)


def all_tables(figures: FikitFigures) -> list[Table]:
    """All tables in the order of the page."""
    return [
        claims_table(figures),
        co_runners_table(figures),
        filling_table(figures),
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


def speedups_table(figures: FikitFigures) -> Table:
    """The speed-ups of the high priority, by GPU."""
    return table_of(
        "High-priority speed-up",
        [{"gpu": gpu, **of} for gpu, pairs in figures.by_gpu.items() for of in distributions(pairs)],
        "GPU = {gpu} | = {what} | pairs = {pairs} | least = {smallest:.2f} | quarter = {quartile:.2f} "
        "| median = {median:.2f} | 3 quarters = {upper_quartile:.2f} | most = {largest:.2f} "
        f"| > {MOST_ABOVE} = {{above:.0%}} | in range = {{inside:.0%}} | FIKIT / alone = {{slowest:.3f}}",
    )


def slices_table(figures: FikitFigures) -> Table:
    """The high-priority speed-ups by the length of a time slice."""
    return table_of(
        "Time slice",
        [{"ms": us / 1e3, **of} for us, pairs in figures.by_slice().items() for of in distributions(pairs, FAMILIES)],
        "slice ms = {ms:g} | = {what} | pairs = {pairs} | least = {smallest:.2f} | median = {median:.2f} "
        f"| most = {{largest:.2f}} | > {MOST_ABOVE} = {{above:.0%}} | in range = {{inside:.0%}}",
    )


def knowledge_tables(figures: FikitFigures) -> list[Table]:
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


def turns_table(figures: FikitFigures) -> Table:
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


def claims_table(figures: FikitFigures) -> Table:
    """Every claim beside its control."""
    rows = [
        (
            each.claim,
            each.published or NONE,
            each.criterion,
            each.setting,
            str(each.services or NONE),
            each.ours.figure,
            each.control,
            each.without.figure,
            each.verdict,
        )
        for each in figures.claimed
    ]
    heads = ("claim", "published", "comes out if", "setting", "services", "ours", "switched off", "then", "verdict")
    return Table("Claims and controls", heads, rows, CLAIMS_NOTE)


def co_runners_table(figures: FikitFigures) -> Table:
    """Quantiles of the speed-ups by setting and number of low-priority services."""
    rows = []
    for (setting, lows), pairs in figures.by_co_runners.items():
        kinds = {"all": pairs, FAMILIES: pairs[~pairs.set_apart], "set apart": pairs[pairs.set_apart]}
        unfilled = NONE
        if lows in ENDS:
            unfilled = f"{distribution(figures.speedups(setting, lows, setting.nothing_filled))['median']:.2f}"
        for what, some in kinds.items():
            if len(some):
                found = distribution(some)
                found |= {"over": found["median"] / (lows + 1), "unfilled": unfilled if what == "all" else NONE}
                rows.append({"setting": setting.text, "lows": lows, "what": what, **found})
    return table_of(
        "Speed-up by the number of low-priority services",
        rows,
        "setting = {setting} | services = {lows} | = {what} | pairs = {pairs} | least = {smallest:.2f} "
        "| 5 % = {p5:.2f} | median = {median:.2f} | 95 % = {p95:.2f} | most = {largest:.2f} "
        f"| below {SPEEDUP[0]} = {{below:.0%}} | in range = {{inside:.0%}} | beyond {SPEEDUP[1]} = {{beyond:.0%}} "
        f"| spanned = {{spanned:.0%}} | > {MOST_ABOVE} = {{above:.0%}} | median over N+1 = {{over:.2f}} "
        "| median, nothing filled = {unfilled}",
        CO_RUNNERS_NOTE,
    )


def filling_table(figures: FikitFigures) -> Table:
    """What filling gaps does to either service, over all pairs: with it and without."""
    rows = []
    for setting in SETTINGS:
        pairs, alone = figures.speedups(setting, 1), figures.networks.loc[setting.gpu]
        idle = alone.gap_share[pairs.high].to_numpy()
        filled, never = (pairs[f"low_share: {mode}"] for mode in (setting.fikit, setting.nothing_filled))
        delay = pairs[setting.fikit] / pairs[setting.nothing_filled]
        found = {
            "high priority's gaps, share of its time alone": idle,
            "low priority's work in them, share of the time": filled,
            "the same over the gaps": filled / idle,
            "the same, nothing filled": never,
            "high priority's time, filled over nothing filled": delay,
        }
        for load in SHARED_NOW_AND_THEN[setting]:
            for mode, text in ((setting.fikit, "FIKIT"), (setting.nothing_filled, "nothing filled")):
                name = f"low priority beside requests {load:.0%} of the time, default over {text}"
                found[name] = figures.low_ratios(setting, load, mode)
        for what, values in found.items():
            quantiles = np.percentile(np.asarray(values, float)[np.isfinite(values)], (5, 25, 50, 75, 95))
            rows.append((setting.text, what, *(f"{value:.3f}" for value in quantiles), f"{np.nanmean(values):.3f}"))
    heads = ("setting", "of all pairs", "5 %", "25 %", "median", "75 %", "95 %", "mean")
    return Table("What filling gaps does", heads, rows, FILLING_NOTE)


def modes_table(figures: FikitFigures) -> Table:
    """The other modes that were run."""
    rows = []
    for gpu, pairs in figures.by_gpu.items():
        shares = {mode: pairs.get(f"low_share: {mode}") for mode in (FIKIT, UNDER_MPS)}
        gaps = {mode: share.mean() for mode, share in shares.items() if share is not None and share.notna().any()}
        base = pairs[DEFAULT]
        found = {
            "default sharing over alone, high priority, median": f"{(base / pairs.high_alone_us).median():.2f}",
            "default sharing over FIKIT under MPS, high priority, median": f"{(base / pairs[UNDER_MPS]).median():.2f}",
            **{
                f"low priority's work in the gaps, share of the time, {mode}, mean": f"{share:.1%}"
                for mode, share in gaps.items()
            },
        }
        if gpu == GPU:
            exclusive = pairs[EXCLUSIVE] / pairs[FIKIT]
            found |= {
                "exclusive over FIKIT, high priority, median and most": (
                    f"{exclusive.median():.2f} and {exclusive.max():.1f}"
                ),
                "default sharing over FIKIT, low priority, intermittent, median": (
                    f"{figures.low_ratios(PROCESSES, SHARED_NOW_AND_THEN[PROCESSES][0], FIKIT).median():.2f}"
                ),
            }
        rows += [(gpu, what, text) for what, text in found.items()]
    return Table("Other modes", ("GPU", "completion time", ""), rows)


def drivers_table(figures: FikitFigures) -> Table:
    found = [drivers(of).set_index(["side", "feature"]).add_suffix(gpu) for gpu, of in figures.by_gpu.items()]
    values = found[0].join(found[1:]).rename("{} priority".format, level="side")
    heads = ("of", "property", *(head for gpu in figures.by_gpu for head in (gpu, "partner fixed")))
    return table_of_numbers("What the speed-up goes with (rank correlation)", heads, values, "+z.2f")


def networks_table(figures: FikitFigures, gpu: str) -> Table:
    """The networks, each service alone."""
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


def outcome(figures: FikitFigures) -> str:
    """Three paragraphs, of all pairs. A claim is shown in a setting if all its controls fail there."""
    verdicts: dict[str, dict[tuple[str, str, int], set[str]]] = {}
    for each in figures.claimed:
        settings = verdicts.setdefault(each.claim.partition(",")[0], {})
        settings.setdefault((each.claim, each.setting, each.services), set()).add(each.verdict)
    counted: dict[str, list[str]] = {"shown": [], "not shown": [], "off": []}
    for claim, settings in verdicts.items():
        found = [min(of, key=["off", "not shown", "shown"].index) for of in settings.values()]
        for verdict, texts in counted.items():
            if verdict in found:
                texts.append(f"{claim} ({found.count(verdict)} of {len(found)} settings)")
    return (
        f"{_why(figures)}\n\nBy settings: came out, and fails without its mechanism: {_listed(counted['shown'])}; did "
        f"not: {_listed(counted['off'])}; came out without the mechanism as well: {_listed(counted['not shown'])}."
    )


def _why(figures: FikitFigures) -> str:
    found = {lows: distribution(of) for (setting, lows), of in figures.by_co_runners.items() if setting == PROCESSES}
    medians = ", ".join(f"{of['median']:.2f} with {lows}" for lows, of in found.items())
    last = max(found)
    low, high = (figures.speedups(setting, 1)[f"low_share: {setting.fikit}"].mean() for setting in (PROCESSES, MPS))
    return (
        f"Why: N services beside one are N + 1 contexts that share time slices. That alone gives a median speed-up "
        f"near N + 1 ({medians}). So the {found[last]['above']:.0%} above {MOST_ABOVE} with {last} services say how "
        f"many share the GPU, and nothing of gap filling. Filling takes up {low:.1%} of the time there, and {high:.1%} "
        f"with a threshold below the gaps. The {found[last]['beyond']:.0%} of pairs beyond {SPEEDUP[1]} are networks "
        f"that wait for the GPU hundreds of times a request."
    )


def _listed(texts: list[str]) -> str:
    return "; ".join(texts) or "nothing"
