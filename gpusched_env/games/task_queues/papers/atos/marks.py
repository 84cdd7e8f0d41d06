"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import Kind, Mark

BY_CLASS: Final = (
    "Graphs are drawn by class, and prices of steps come from latencies; no figure of such a run was used."
)
MARKS: Final = (
    Mark(
        "searches, discrete over persistent time: road",
        Kind.FITTED,
        "The price of a poll is the published time of this persistent run over its polls.",
    ),
    *(
        Mark(f"searches, discrete over persistent time: {name}", Kind.PREDICTED, BY_CLASS)
        for name in ("hollywood", "social", "web")
    ),
    Mark(
        "overwork of a persistent search: *",
        Kind.PREDICTED,
        BY_CLASS,
        "level by level: 1.00, inside",
    ),
    Mark("overwork: hollywood-like above social", Kind.PREDICTED, BY_CLASS),
    Mark("overwork: social above road-like", Kind.PREDICTED, BY_CLASS),
    Mark("colouring the mesh, blocks, fetch 32: work", Kind.PREDICTED, BY_CLASS, "warps: 1.00"),
    Mark("blocks, fetch 128: work", Kind.PREDICTED, BY_CLASS, "warps: 1.00"),
    Mark("warps: work", Kind.PREDICTED, BY_CLASS, "blocks, fetch 32: 7.94"),
    Mark("blocks, fetch 32, over warps: time", Kind.PREDICTED, BY_CLASS),
    Mark(
        "hubs, warps over blocks: time",
        Kind.PREDICTED,
        BY_CLASS,
        "the mesh, which has no hubs: 0.34",
    ),
    Mark(
        "search of a road on * GPUs over 1: time",
        Kind.VACUOUS,
        "The range has no upper end and begins at 1, where it makes no difference how many GPUs there are; published "
        "are 1.40 to 1.55.",
        "no difference: 1.00, inside",
    ),
    Mark(
        "ranking on 1 GPU over 4: time, *",
        Kind.PREDICTED,
        "Bandwidths are of data sheets and latencies estimates; a loss of nothing, 4, lies within.",
        "no gain: 1.00",
    ),
    Mark("overwork of a search grows with each GPU: *", Kind.PREDICTED, BY_CLASS),
)
