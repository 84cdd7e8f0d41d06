"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

BY_CLASS: Final = (
    "Graphs are drawn by class. Prices of steps come from latencies, those of blocks times one factor, for which "
    "hollywood's persistent time alone was used. That it grows with the warps that have a slot was decided when road "
    "and web had been seen with one factor for all."
)
NOT_RUN: Final = "Not run: the graph is too large. It counts as off."
MARKS: Final = (
    *(
        CriterionMark(f"searches, discrete over persistent time: {name}", Kind.PREDICTED, BY_CLASS)
        for name in ("road", "social", "web")
    ),
    CriterionMark(
        "searches, discrete over persistent time: hollywood",
        Kind.PREDICTED,
        "The factor of blocks is fitted to the persistent time; the discrete one was not used.",
    ),
    CriterionMark(
        "overwork of a persistent search: *",
        Kind.PREDICTED,
        BY_CLASS,
        "level by level: 1.00, inside",
    ),
    CriterionMark("overwork: hollywood-like above social", Kind.PREDICTED, BY_CLASS),
    CriterionMark("overwork: social above road-like", Kind.PREDICTED, BY_CLASS),
    CriterionMark("colouring the mesh, blocks, fetch 32: work", Kind.PREDICTED, BY_CLASS, "warps: 1.00"),
    CriterionMark("blocks, fetch 128: work", Kind.PREDICTED, BY_CLASS, "warps: 1.00"),
    CriterionMark("warps: work", Kind.PREDICTED, BY_CLASS, "blocks, fetch 32: 4.12"),
    CriterionMark("blocks, fetch 32, over warps: time", Kind.PREDICTED, BY_CLASS),
    CriterionMark(
        "hubs, warps over blocks: time",
        Kind.PREDICTED,
        BY_CLASS,
        "the mesh, which has no hubs: 0.35",
    ),
    CriterionMark(
        "persistent search, ms: hollywood",
        Kind.FITTED,
        "The factor of a block's latencies makes it so.",
    ),
    *(
        CriterionMark(f"{form} search, ms: {name}", Kind.PREDICTED, BY_CLASS)
        for form in ("persistent", "discrete")
        for name in ("road", "hollywood", "social", "web")
        if (form, name) != ("persistent", "hollywood")
    ),
    *(CriterionMark(f"* search, ms: {name}", Kind.PREDICTED, NOT_RUN) for name in ("twitter", "osm-eur")),
    CriterionMark("overwork of a discrete search: *", Kind.PREDICTED, BY_CLASS, "level by level: 1.00, inside"),
    CriterionMark("colouring the mesh, ns a task: *", Kind.PREDICTED, BY_CLASS),
    CriterionMark("search of a road on * GPUs over 1: time", Kind.PREDICTED, BY_CLASS, "no difference: 1.00"),
    CriterionMark(
        "ranking on 1 GPU over 4: time, *",
        Kind.PREDICTED,
        "Bandwidths are of data sheets and latencies estimates; a loss of nothing, 4, lies within.",
        "no gain: 1.00",
    ),
    CriterionMark("overwork of a search grows with each GPU: *", Kind.PREDICTED, BY_CLASS),
)
