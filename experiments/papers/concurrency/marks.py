"""What each criterion of the page is worth as evidence."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.lib.criteria import CriterionMark, Kind

WITHOUT: Final = "It comes out with its mechanism switched off as well."
TURNAROUND_USED: Final = (
    "The figure is known from notes on the paper's text and slides, and was used for nothing; its range is our own."
)
MARKS: Final = (
    CriterionMark(
        "Priority streams: running blocks are not preempted, requests wait for them",
        Kind.VACUOUS,
        WITHOUT,
        "running blocks are saved for requests: comes out",
    ),
    CriterionMark(
        "Priority streams: the delay compounds over a request's kernels, beyond that of a slice",
        Kind.VACUOUS,
        f"{WITHOUT} It rests on hosts of one process that slow each other, as recorded.",
        "running blocks are saved for requests: comes out",
    ),
    CriterionMark(
        "Priority streams: turnaround is less predictable than in slices",
        Kind.VACUOUS,
        f"{WITHOUT} It rests on hosts of one process that slow each other, as recorded.",
        "running blocks are saved for requests: comes out",
    ),
    CriterionMark(
        "Time slicing: the lowest turnaround of the three",
        Kind.PREDICTED,
        "It comes out with hosts as recorded as well, so that the published time that set how fast hosts are does not "
        "decide it.",
        "a context keeps the GPU for 1 s: fails",
    ),
    CriterionMark(
        "Time slicing: the most predictable turnaround of the three",
        Kind.VACUOUS,
        WITHOUT,
        "a context keeps the GPU for 1 s: comes out",
    ),
    CriterionMark(
        "Time slicing: the poorest utilisation, tasks never overlap",
        Kind.DEFINITIONAL,
        "Contexts take turns by the rule of slices, and the control is the comparison itself.",
        "contexts at once (MPS): fails",
    ),
    CriterionMark(
        "MPS: the best utilisation, by training time",
        Kind.PREDICTED,
        "No training time of MPS was used, and contention could have cost more than turns do.",
        "contexts take turns: fails",
    ),
    CriterionMark(
        "MPS: contention on the SMs lengthens both tasks' kernels",
        Kind.VACUOUS,
        WITHOUT,
        "blocks run as if alone on the GPU: comes out",
    ),
    CriterionMark(
        "No mechanism gives both low turnaround and high utilisation",
        Kind.DEFINITIONAL,
        "Slices answer first here, and training cannot be fastest where contexts take turns by rule.",
    ),
    CriterionMark(
        "Fine-grained preemption: turnaround below all of them",
        Kind.VACUOUS,
        WITHOUT,
        "priorities alone, hosts apart: comes out",
    ),
    CriterionMark(
        "Fine-grained preemption: its cost is bearable, more gets done in all than in slices",
        Kind.PREDICTED,
        "What a save costs follows from bytes and bandwidth, and no progress was used.",
        "whole kernels are saved: fails",
    ),
    CriterionMark(
        "Room kept open for close kernels hides part of the cost",
        Kind.DEFINITIONAL,
        "SMs that are kept for requests need not be saved, and turnarounds are equal without them.",
        "no room kept open: fails",
    ),
    CriterionMark(
        "Occupancy misleads: utilisation should be measured by best-effort progress",
        Kind.DEFINITIONAL,
        "The run that shows it spreads blocks over more SMs than they need, and was made for that.",
        "as few SMs as hold the blocks: fails",
    ),
    CriterionMark(
        "Turnaround: time slicing below MPS below priority streams",
        Kind.PREDICTED,
        "How fast hosts are was set by a published training time; by how much each mechanism slows requests was not "
        "used but for time slicing, and the order changes with the hosts.",
        "a context keeps the GPU for 1 s: fails",
    ),
    CriterionMark(
        "Training time added: most by time slicing, least by MPS",
        Kind.FITTED,
        "The time that slices add to training set how fast hosts are.",
        "contexts at once (MPS): fails",
    ),
    CriterionMark(
        "published turnaround: ResNet-50, time slicing",
        Kind.FITTED,
        "It set how fast hosts are, together with the time that slices add to training.",
        "nothing is added: 1.00",
    ),
    *(
        CriterionMark(
            f"published turnaround: {network}",
            Kind.PREDICTED,
            f"{TURNAROUND_USED} {hosts}",
            "nothing is added: 1.00",
        )
        for network, hosts in (
            ("ResNet-50, priority streams", "How fast hosts are follows from time slicing."),
            ("ResNet-50, MPS", "How fast hosts are follows from time slicing."),
            ("ResNet-152, MPS", "Hosts are as fast as in our recording."),
            ("VGG-19, priority streams", "Hosts are as fast as in our recording."),
            ("DenseNet-201, priority streams", "Hosts are as fast as in our recording."),
        )
    ),
    CriterionMark(
        "recorded mechanism: *",
        Kind.PREDICTED,
        "Only the times of tasks alone, and what hosts cost each other, are taken from the recording.",
    ),
    CriterionMark(
        "recorded pair: *",
        Kind.FITTED,
        "The demands of classes of kernels were chosen on an earlier recording of the same pairs.",
    ),
)
