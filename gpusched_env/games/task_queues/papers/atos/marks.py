"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import Kind, Mark

BY_CLASS: Final = (
    "Graphs are drawn by class. Prices of steps come from latencies, those of blocks times one factor, for which "
    "hollywood's persistent time alone was used. That it grows with the warps that have a slot was decided when road "
    "and web had been seen with one factor for all."
)
NOT_RUN: Final = "Not run: the graph is too large. It counts as off."
MARKS: Final = (
    *(
        Mark(f"searches, discrete over persistent time: {name}", Kind.PREDICTED, BY_CLASS)
        for name in ("road", "social", "web")
    ),
    Mark(
        "searches, discrete over persistent time: hollywood",
        Kind.PREDICTED,
        "The factor of blocks is fitted to the persistent time; the discrete one was not used.",
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
    Mark("warps: work", Kind.PREDICTED, BY_CLASS, "blocks, fetch 32: 4.12"),
    Mark("blocks, fetch 32, over warps: time", Kind.PREDICTED, BY_CLASS),
    Mark(
        "hubs, warps over blocks: time",
        Kind.PREDICTED,
        BY_CLASS,
        "the mesh, which has no hubs: 0.35",
    ),
    Mark(
        "persistent search, ms: hollywood",
        Kind.FITTED,
        "The factor of a block's latencies makes it so.",
    ),
    *(
        Mark(f"{form} search, ms: {name}", Kind.PREDICTED, BY_CLASS)
        for form in ("persistent", "discrete")
        for name in ("road", "hollywood", "social", "web")
        if (form, name) != ("persistent", "hollywood")
    ),
    *(Mark(f"* search, ms: {name}", Kind.PREDICTED, NOT_RUN) for name in ("twitter", "osm-eur")),
    Mark("overwork of a discrete search: *", Kind.PREDICTED, BY_CLASS, "level by level: 1.00, inside"),
    Mark("colouring the mesh, ns a task: *", Kind.PREDICTED, BY_CLASS),
    Mark("search of a road on * GPUs over 1: time", Kind.PREDICTED, BY_CLASS, "no difference: 1.00"),
    Mark(
        "ranking on 1 GPU over 4: time, *",
        Kind.PREDICTED,
        "Bandwidths are of data sheets and latencies estimates; a loss of nothing, 4, lies within.",
        "no gain: 1.00",
    ),
    Mark("overwork of a search grows with each GPU: *", Kind.PREDICTED, BY_CLASS),
)
