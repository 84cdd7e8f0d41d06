"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

ONE_STREAM: Final = "one stream: 1.00"
NEAR_ONE: Final = "The range contains 1, which one stream gives."
MARKS: Final = (
    CriterionMark(
        "ACS-SW, mean of deep RL",
        Kind.PREDICTED,
        "Programs were chosen by the published occupancy, not by a speed-up; it hangs on the 4.4 us between kernels "
        "of a stream, which are assumed.",
        ONE_STREAM,
    ),
    CriterionMark("ACS-SW, mean of dynamic networks", Kind.VACUOUS, NEAR_ONE, f"{ONE_STREAM}, inside"),
    CriterionMark("ACS-SW, mean of static networks", Kind.VACUOUS, NEAR_ONE, f"{ONE_STREAM}, inside"),
    CriterionMark(
        "ACS-HW, mean of * networks",
        Kind.PREDICTED,
        "Programs are recorded ones of the class, in batches chosen by the published occupancy; no speed-up was used "
        "for any constant.",
        ONE_STREAM,
    ),
    CriterionMark(
        "ACS-HW, largest of deep RL",
        Kind.PREDICTED,
        "Programs were chosen by the published occupancy, not by a speed-up.",
        ONE_STREAM,
    ),
    CriterionMark(
        "ACS-HW over ACS-SW, least of all programs",
        Kind.VACUOUS,
        "Hardware costs less than software at each step by the published costs, and the range passes no difference "
        "as well as a tenfold one.",
        "software in place of hardware: 1.00, inside",
    ),
    CriterionMark(
        "ACS-HW over ACS-SW, mean of *",
        Kind.PREDICTED,
        "A value, the quotient of two published means; what either costs is published, and no speed-up was used.",
        "software in place of hardware: 1.00",
    ),
    CriterionMark(
        "ACS-HW, mean of all",
        Kind.PREDICTED,
        "The mean over the three classes' programs; no speed-up was used for any constant.",
        ONE_STREAM,
    ),
    CriterionMark(
        "CUDA graphs made for each input, most of deep RL",
        Kind.PREDICTED,
        "What making a node and an edge costs was measured elsewhere; only the side of 1 is judged.",
        "graphs made before: 1.70 in the mean",
    ),
    CriterionMark(
        "the same, most of dynamic networks",
        Kind.PREDICTED,
        "What making a node and an edge costs was measured elsewhere; only the side of 1 is judged.",
        "graphs made before: 1.58 in the mean",
    ),
    CriterionMark(
        "CUDA graph made before over ACS-HW, static networks",
        Kind.PREDICTED,
        "No constant was chosen by it; it holds with memory that is used again, and not with memory of its own.",
        "one stream in place of the graph: 0.50",
    ),
    CriterionMark(
        "persistent threads, mean of deep RL",
        Kind.PREDICTED,
        "What a task costs is an estimate that it was not used for; only the side of 1 is judged, where the paper "
        "has 0.74.",
    ),
    CriterionMark(
        "persistent threads, mean of deep RL, as a value",
        Kind.PREDICTED,
        "What a task costs is an estimate that it was not used for.",
        ONE_STREAM,
    ),
    CriterionMark(
        "gain of a window of 32 over one of 16, deep RL, as a value",
        Kind.PREDICTED,
        "Which launches are independent follows from the recorded programs; no constant was chosen by it.",
        "a window of 16: 0",
    ),
    CriterionMark(
        "gain of a window of 32 over one of 16, deep RL",
        Kind.VACUOUS,
        "The range contains 0, which no larger window gives, and ours is that.",
        "a window of 16: 0, inside",
    ),
)
