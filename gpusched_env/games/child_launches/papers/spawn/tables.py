"""The tables of the page."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.criteria import VERDICTS
from gpusched_env.games.child_launches.measure.prediction import PredictedApplication, prediction_table
from gpusched_env.games.child_launches.papers.spawn.figures import (
    CLOSE,
    MEANS,
    OCCUPANCY_USED,
    SpawnFigures,
    bar_errors,
    geometric_mean,
    optima,
    sweep_errors,
)
from gpusched_env.games.child_launches.papers.spawn.runs import (
    AGGREGATION,
    BARS,
    CHOICES,
    DP,
    DTBL,
    FLAT,
    MAPPED_BENCHMARKS,
    MECHANISMS,
    OFFLINE,
    SENSITIVITY,
    SHARE,
    SPAWN,
    TODAY,
    Change,
    SpawnRun,
    maps_of,
)


def all_tables(figures: SpawnFigures) -> list[Table]:
    """All tables in the order of the page."""
    return [
        score_table(figures),
        speedup_table(figures),
        error_table(figures),
        launch_table(figures),
        offload_table(figures),
        choice_table(figures),
        variation_table(figures, "Sensitivity to the constants", SENSITIVITY),
        variation_table(figures, "What each mechanism is worth", MECHANISMS),
        structure_table(figures),
        map_table(figures),
        today_table(figures),
        prediction_table(figures.of(PredictedApplication)),
    ]


def score_table(figures: SpawnFigures) -> Table:
    """The figures that are judged."""
    rows = [
        (
            score.figure,
            score.source,
            NONE if score.published is None else f"{score.published:{score.form}}",
            f"{score.ours:{score.form}}",
            NONE if score.published is None else f"{score.ours / score.published - 1.0:+z.0%}",
            score.criterion,
            VERDICTS[score.holds],
        )
        for score in figures.scores
    ]
    heads = ("figure", "of", "published", "ours", "error", "our criterion", "verdict")
    note = (
        "*Published* figures are the paper's; where there is none, ours is an error against the paper's bars. The "
        "criteria are our own."
    )
    return Table("What is judged", heads, rows, note)


def error_table(figures: SpawnFigures) -> Table:
    """The errors of every bar."""
    errors = bar_errors(figures.bars(""), figures.theirs)
    rows = [(name, *(f"{errors.loc[name, bar]:+z.0%}" for bar in BARS)) for name in figures.published]
    rows.append(("mean, without sign", *(f"{errors[bar].abs().mean():.0%}" for bar in BARS)))
    rows.append((f"within {CLOSE:.0%}", *(f"{(errors[bar].abs() <= CLOSE).sum()} of {len(errors)}" for bar in BARS)))
    note = "Errors cancel in geometric means, so they are shown one by one."
    return Table("Error of each bar", ("benchmark", *BARS.values()), rows, note)


def speedup_table(figures: SpawnFigures) -> Table:
    """Figure 15, and DTBL of Figure 21."""
    bars, found = figures.bars(""), figures.speedups.loc[""]
    rows = []
    for name, theirs in figures.published.items():
        pairs = [f"{bars.loc[name, bar]:.2f} / {theirs['speedup'][bar]:.2f}" for bar in BARS]
        dtbl = theirs["dtbl"]
        beside = f"{found.loc[name, DTBL]:.2f}" + (f" / {dtbl:.2f}" if dtbl else "")
        rows.append((name, *pairs, beside, f"{found.loc[name, AGGREGATION]:.2f}"))
    means = [f"{geometric_mean(bars[bar]):.2f} / {MEANS[bar]:.2f}" for bar in BARS]
    rows.append(("geometric mean", *means, *(f"{geometric_mean(found[of]):.2f}" for of in (DTBL, AGGREGATION))))
    return Table(
        "Speed-up over flat",
        ("benchmark", *BARS.values(), DTBL, AGGREGATION),
        rows,
        "![Speed-up over flat](spawn-speedup.svg)",
    )


def launch_table(figures: SpawnFigures) -> Table:
    """Figures 16 and 18."""
    runs = figures.to_frame(SpawnRun)
    runs = runs[runs.variation == ""].set_index(["benchmark", "scheduler"])
    rows = []
    for name, theirs in figures.published.items():
        of = [runs.loc[(name, scheduler)] for scheduler in BARS.values()]
        launched = [f"{o.children:,} / {theirs['children'][bar]:,}" for bar, o in zip(BARS, of, strict=True)]
        shares = [
            f"{100 * o.occupancy:.0f} / {theirs['occupancy_percent'][bar]:.0f}" for bar, o in zip(BARS, of, strict=True)
        ]
        rows.append((name, *launched, *shares))
    errors = figures.occupancies().abs().mean()
    rows.append(("mean error, points", *([""] * len(BARS)), *(f"{errors[bar]:.1f}" for bar in BARS)))
    heads = [f"{what} {of}" for what in ("children", "occupancy %") for of in BARS.values()]
    note = (
        "The paper's children are read off to 25 launches (Figure 18); they fixed inputs and SPAWN's options, and are "
        "not judged. Neither are the occupancies (Figure 16) of baseline-dp, which fixed the warps of a child, and any "
        f"of {', '.join(OCCUPANCY_USED)}."
    )
    return Table("Child kernels and occupancy", ("benchmark", *heads), rows, note)


def offload_table(figures: SpawnFigures) -> Table:
    """The table of Figure 5."""
    sweep = figures.offload()
    found, errors = optima(sweep), sweep_errors(sweep)
    rows = []
    for name, shares in sweep.items():
        ours, theirs, points = found[name]
        bars = ", ".join(f"{share} %: {of['ours']:.2f} / {of['paper']:.2f}" for share, of in shares.items())
        rows.append((name, f"{ours:g} / {theirs:g}", f"{points:g}", f"{errors[name]:.0%}", bars))
    note = (
        "Static thresholds that offload a share of the work (Figure 5; of GC and SSSP, of what can be offloaded). "
        "*Best*: the share with the largest speed-up; of the paper's equal bars the nearest to ours. The largest "
        "speed-ups of some lie between shares of the sweep, and are not seen here. *Error*: mean over the bars."
    )
    return Table(
        "Speed-up by offloaded share", ("benchmark", "best %", "points", "error", "share: speed-up"), rows, note
    )


def choice_table(figures: SpawnFigures) -> Table:
    """What the paper leaves open: what it is worth, and the launches that the defaults were chosen by."""
    found, rows = figures.speedups.loc[""], []
    for what, spec in {"as shipped": SPAWN, **CHOICES}.items():
        correlation = found[spec].rank().corr(figures.theirs["spawn"].rank())
        over = geometric_mean(found[spec]) / geometric_mean(found[OFFLINE])
        error = (found[spec] / figures.theirs["spawn"] - 1.0).abs().mean()
        shown = [f"{value:.2f}" for value in (geometric_mean(found[spec]), over, correlation)]
        rows.append((what, *shown, f"{error:.0%}", f"{figures.alike(spec)} of 13"))
    heads = ("choice", "geometric mean", "over offline-search", "correlation", "error of bars", "launches within x 2")
    note = "The defaults are those whose launches come nearest to Figure 18, which therefore judges nothing."
    return Table("SPAWN's open choices", heads, rows, note)


def variation_table(figures: SpawnFigures, title: str, variations: Mapping[str, Change]) -> Table:
    """Means, errors of bars and rank correlations by variation."""
    rows = []
    for of in ("", *variations):
        bars = figures.bars(of)
        sums, errors = figures.sums(bars), bar_errors(bars, figures.theirs).abs().mean()
        rows.append(
            (
                of or "as shipped",
                *(f"{sums['geomean'][bar]:.2f}" for bar in BARS),
                *(f"{errors[bar]:.0%}" for bar in BARS),
                *(f"{sums['spearman'][bar]:.2f}" for bar in BARS),
            )
        )
    heads = [f"{what} {of}" for what in ("mean", "error", "correlation") for of in BARS.values()]
    return Table(title, ("", *heads), rows, "Fewer thresholds are tried than above. *Error*: mean error of the bars.")


def structure_table(figures: SpawnFigures) -> Table:
    """Figures 7 and 8."""
    blocks, rows = figures.blocks(), []
    for name, (own, theirs) in figures.queues().items():
        sizes = [f"{ours:.2f} / {paper:.2f}" for (of, _), (ours, paper) in blocks.items() if of == name]
        rows.append((name, *sizes, f"{own:.2f} / {theirs:.2f}"))
    pairs = [blocks.values(), figures.queues().values()]
    of_blocks, of_queues = (np.mean([abs(ours / paper - 1.0) for ours, paper in of]) for of in pairs)
    heads = ("benchmark", *(f"blocks of {size}" for size in (64, 128, 256)), "own queues")
    note = (
        "Of Baseline-DP: speed-up over children's blocks of 32 (Figure 7), and of a queue a child over a queue a "
        f"parent's block (Figure 8; SSSP's threads were chosen with its bars in view). Mean errors of the bars: "
        f"{of_blocks:.0%} and {of_queues:.0%}."
    )
    return Table("Blocks and queues of children", heads, rows, note)


def map_table(figures: SpawnFigures) -> Table:
    """Maps of threads to work: what could choose one, and the speed-ups, by which none is chosen."""
    runs, rows = figures.of(SpawnRun), []
    for name, few in MAPPED_BENCHMARKS.items():
        if name not in figures.published:
            continue
        theirs, schemes = figures.published[name], {"dp": DP, "offline": SHARE + few, "spawn": SPAWN}
        for of in ("", *maps_of(name)):
            found = {bar: runs[SpawnRun(name, scheme, of)] for bar, scheme in schemes.items()}
            flat = runs[SpawnRun(name, FLAT, of)].cycles
            launches = [f"{run.children:,} / {theirs['children'][bar]:,}" for bar, run in found.items()]
            shares = [
                f"{100 * run.occupancy:.1f} / {theirs['occupancy_percent'][bar]:.1f}" for bar, run in found.items()
            ]
            gains = [f"{flat / run.cycles:.2f} / {theirs['speedup'][bar]:.2f}" for bar, run in found.items()]
            rows.append((name, of or "as shipped", *launches, *shares, *gains))
    bars = [f"{what} {of}" for what in ("children", "occupancy %", "speed-up") for of in (DP, "few launches", SPAWN)]
    note = (
        "*Few launches*: the static threshold with the share of Offline-Search. Launches under a static threshold do "
        "not depend on the map at all. Speed-ups choose nothing here; they say that no map explains the gap."
    )
    return Table("Maps of threads to work", ("benchmark", "map", *bars), rows, note)


def today_table(figures: SpawnFigures) -> Table:
    """The speed-ups on a GPU of today."""
    bars, runs = figures.bars(TODAY), figures.to_frame(SpawnRun)
    children = runs[(runs.variation == TODAY) & (runs.scheduler == SPAWN)].set_index("benchmark")["children"]
    rows = [
        (name, *(f"{bars.loc[name, bar]:.2f}" for bar in BARS), f"{children[name]:,}") for name in figures.published
    ]
    rows.append(("geometric mean", *(f"{geometric_mean(bars[bar]):.2f}" for bar in BARS), ""))
    note = "The same programs with the launch costs, queues and pool measured on an H200."
    return Table("What would SPAWN win today?", ("benchmark", *BARS.values(), "children spawn"), rows, note)
