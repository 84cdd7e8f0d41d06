"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

SLICES: Final = (
    "Slices and switches were measured on an RTX 3090, the time alone is an input; no figure beside others was used."
)
QUEUES: Final = (
    "How kernels of two processes share units follows from their shapes; of the time alone only ratios are used."
)
HELD: Final = "Thresholds, levels and policies are the artefact's, prices those of the boards."
TURNS: Final = "Slices, thresholds and the policy are the artefact's."
LENGTHS: Final = "Kernels have the lengths that the artefact names, prices are the V100's."
MARKS: Final = (
    CriterionMark("GV100, native: p*", Kind.PREDICTED, SLICES, "alone: 1"),
    CriterionMark("GV100, XSched: p*", Kind.PREDICTED, HELD, "native: 2.10, 2.36"),
    CriterionMark("GV100, native: throughput*", Kind.PREDICTED, SLICES, "slices without switches: 0.5"),
    CriterionMark(
        "GV100, XSched: throughput*",
        Kind.FITTED,
        "That an idle queue is noticed late was read in the code after 0.69 and 0.28 had come out without it.",
        "native: 0.46, 0.46",
    ),
    CriterionMark("MI50, native: p*", Kind.PREDICTED, QUEUES, "alone: 1"),
    CriterionMark("MI50, XSched: p*", Kind.PREDICTED, HELD, "native: 1.61, 1.63"),
    CriterionMark("MI50, native: throughput*", Kind.PREDICTED, QUEUES, "halves: 0.5"),
    CriterionMark("MI50, XSched: throughput*", Kind.PREDICTED, TURNS, "native: 0.62, 0.62"),
    CriterionMark(
        "level *", Kind.PREDICTED, LENGTHS, "the level below: off by the threshold, or by the kernel's length"
    ),
    CriterionMark(
        "lengths read off level 1, level 1: *", Kind.FITTED, "The lengths are read off its longest 99th percentile."
    ),
    CriterionMark(
        "lengths read off level 1, level 2: *",
        Kind.PREDICTED,
        "Of level 2 nothing was used.",
        "lengths as named: judged apart",
    ),
)
