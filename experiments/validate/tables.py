"""The tables of a validation, its controls, and its first sentences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from gpusched_env.display.frame import frame
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.recorded import GraphPair
from gpusched_env.experiments.lib.verdicts import as_row, table_of, table_of_numbers
from gpusched_env.experiments.validate.recordings import KERNEL_SETS, MODEL_PAIRS, PROCESSES
from gpusched_env.experiments.validate.scoring import SIDES, brief, spread
from gpusched_env.workload.importers.combining import loses_cached_data, without_cache
from gpusched_env.workload.kernel import Kernel, Waves
from gpusched_env.workload.workload import Workload

if TYPE_CHECKING:
    from gpusched_env.experiments.validate.results import Limited, Validation


Predicted = Sequence[tuple[GraphPair, tuple[float, float]]]
"""Pairs with the predicted slowdowns of foreground and background."""
Workloads = Mapping[str, Workload]
L2, WAVES, ENDS = "the L2", "even waves", "uneven ends"
"""Mechanisms that can be switched off."""
BIAS: Final = "*Bias*: the median error with its sign."
L2_NOTE: Final = f"""\
Slowdowns with what the L2 keeps of a network and what others drive out ([the law](hardware-model.md#the-l2)), and \
with kernels that take as long as alone whatever ran before. *Kept*: networks whose weights and activations fit into \
the L2, which is in use by nobody else when they are alone. {BIAS}
"""
WAVES_NOTE: Final = f"""\
Slowdowns with kernels whose blocks fill SMs evenly ([even waves](hardware-model.md#even-waves)) and leave them \
unevenly, and with kernels of equal blocks whose last wave leaves SMs idle. {BIAS}
"""
UNEVEN_ENDS_NOTE: Final = f"""\
Slowdowns with long kernels some of whose blocks leave their SM early ([uneven ends](hardware-model.md#uneven-ends)), \
and with kernels whose blocks all take the same time. {BIAS}
"""


def without_l2(workloads: Workloads) -> dict[str, Workload] | None:
    """The workloads as if nothing were lost in the L2; ``None`` where nothing is known of it anyway."""
    if not any(loses_cached_data(workload) for workload in workloads.values()):
        return None
    return {name: without_cache(workload) for name, workload in workloads.items()}


def in_full_waves(workloads: Workloads) -> dict[str, Workload] | None:
    """The workloads with kernels in full waves; ``None`` where they are all so anyway."""
    return _with_waves(workloads, "full", instead_of=("even", "together"))


def ending_together(workloads: Workloads) -> dict[str, Workload] | None:
    """The workloads with kernels whose blocks take the same time; ``None`` where they do anyway."""
    return _with_waves(workloads, "together", instead_of=("even",))


def _with_waves(workloads: Workloads, waves: Waves, instead_of: Collection[str]) -> dict[str, Workload] | None:
    if not any(kernel.waves in instead_of for workload in workloads.values() for kernel in workload.kernels):
        return None

    def changed(kernel: Kernel) -> Kernel:
        return replace(kernel, waves=waves) if kernel.waves in instead_of else kernel

    return {
        name: replace(workload, kernels=tuple(changed(kernel) for kernel in workload.kernels))
        for name, workload in workloads.items()
    }


CONTROLS: Final[Mapping[str, Callable[[Workloads], dict[str, Workload] | None]]] = {
    L2: without_l2,
    WAVES: in_full_waves,
    ENDS: ending_together,
}
"""What makes workloads for which a mechanism is off, by its name."""


def control_tables(complete: Predicted, controls: Mapping[str, Predicted], workloads: Workloads) -> list[Table]:
    """A table for each control: errors with the mechanism and without it.

    Args:
        complete: predicted slowdowns.
        controls: of the same pairs, by what is off.
        workloads: by name.
    """
    kept = {name for name, workload in workloads.items() if loses_cached_data(workload)}
    found = []
    if L2 in controls:
        rows = _errors(
            complete, controls[L2], lambda pair, side: "kept" if (pair.fg, pair.bg)[side] in kept else "others"
        )
        found.append(_table(L2, "networks", {name: rows.get(name, []) for name in ("kept", "others", "all")}, L2_NOTE))
    for off, note in ((WAVES, WAVES_NOTE), (ENDS, UNEVEN_ENDS_NOTE)):
        if off in controls:
            rows = _errors(complete, controls[off], lambda _, side: ("foreground", "background")[side])
            found.append(_table(off, "side", rows, note))
    return found


def _errors(
    complete: Predicted, control: Predicted, group: Callable[[GraphPair, int], str]
) -> dict[str, list[tuple[float, float]]]:
    """Errors of slowdowns with and without, by group (of a pair and 0 or 1, its side) and of all."""
    found: dict[str, list[tuple[float, float]]] = {}
    everything = []
    for (pair, predicted), (_, without) in zip(complete, control, strict=True):
        for side, measured in enumerate(pair.recorded):
            errors = predicted[side] / measured - 1.0, without[side] / measured - 1.0
            found.setdefault(group(pair, side), []).append(errors)
            everything.append(errors)
    return {**found, "all": everything}


def _table(off: str, of: str, groups: Mapping[str, Sequence[tuple[float, float]]], note: str) -> Table:
    heads = (of, "slowdowns", "with: median", "p90", "bias", "without: median", "p90", "bias")
    rows = [[name, str(len(errors)), *_figures(errors)] for name, errors in groups.items() if errors]
    return Table(f"Without {off}", heads, rows, note)


def _figures(errors: Sequence[tuple[float, float]]) -> list[str]:
    shown: list[str] = []
    for column in np.array(errors, np.float64).T:
        sizes = np.abs(column)
        shown += [f"{np.median(sizes):.2%}", f"{np.percentile(sizes, 90):.2%}", f"{np.median(column):+.2%}"]
    return shown


NAMES = {**{name: name for name in KERNEL_SETS}, MODEL_PAIRS: "pairs of networks", PROCESSES: "programs"}
EVERY_PAIR = "Every pair of networks"
ALL_ON = "everything on"
EVERY = {"sequences": 5}
"""Sets of which an ablation runs only every n-th scenario."""
SKILL_NOTE = """\
Absolute errors. *Constant*: the median of the mode, which is the stretch of a launch over its time alone, or the \
slowdown of a side. It is read off the very recordings that it is compared on, which no prediction is allowed. *SM \
shares*: a kernel covers as many SMs as it has blocks, if there are so many; where SMs are too few, the more urgent \
kernel goes first, and equals shrink in proportion. Networks meet at random phases; one that waits for SMs that are \
never free is slowed without end (*inf*). *Skill*: how far the simulator's median error is below the rival's; below \
zero the rival is better.
"""
ENDS_NOTE = """\
*All*: every launch. *Beyond noise*: the distance from the band that the ends of its repetitions lie in, for every \
launch; *within* is the share of launches that lie inside. *Reproducible*: only launches whose repetitions lie within \
5 % of their end, the filter of earlier versions, kept for comparison. *Noise*: the width of the band.
"""
SLOWDOWNS_NOTE = """\
*New*: how many of a pair's networks are neither shipped as a workload nor in any other shipped recording of pairs.
"""
HALVES_NOTE = """\
Constants were scanned on the even scenarios of pairs and mixes of h100-sxm, and the worst cases of both halves were \
looked at when mechanisms were chosen: neither half is a test.
"""
ABLATION_NOTE = """\
The same ends and makespans with one mechanism switched off at a time; {sampled}pairs of networks are not run. \
*Carve-out*: every SM has all of its shared memory at all times. *Scale*: kernels take what their work says, not their \
solo duration. *Timer*: the kernel that releases the streams holds an SM.
"""
EVERY_PAIR_NOTE = """\
Slowdowns, predicted and measured; {faster} of {count} recorded ones are below 1, which no law of sharing gives.
"""


def all_tables(validation: Validation) -> list[Table]:
    """All tables in the order of the page; some may have no rows."""
    checks = [as_row(c) | {"name": NAMES[c.set], "what": limited(c)} for c in validation.checks()]
    return [
        table_of(
            "Limits",
            checks,
            "set = {name} | figure = {what} | error = {error:.2%} | limit = {limit:.2%} | = {verdict}",
        ),
        _skills(validation),
        *_ends(validation),
        _slowdowns(validation),
        *control_tables(validation.model_pairs, validation.controls, validation.recordings.workloads),
        _halves(validation),
        _without_one(validation),
        _every_pair(validation),
        *validation.programs.tables(),
    ]


def limited(check: Limited) -> str:
    """What an error that has a limit is of."""
    if check.set == PROCESSES:
        return check.figure
    if check.set == MODEL_PAIRS:
        return check.figure if "constant" in check.figure else f"slowdown, {check.figure}"
    return "makespan, median" if check.figure == "makespan median" else f"end, {check.figure}"


def _skills(validation: Validation) -> Table:
    rows = []
    for of in validation.skills:
        row = [NAMES[of["set"]], of["of"], str(of["n"])]
        for name in ("simulator", "constant", "shares"):
            row += [f"{of[name]['median']:.2%}", f"{of[name]['p90']:.2%}"]
            if name != "simulator":
                row.append(NONE if of[name]["skill"] is None else f"{of[name]['skill']:+.2f}")
        rows.append(row)
    heads = ["set", "of", "n", "simulator: median", "p90", "constant: median", "p90", "skill"]
    return Table("Skill over simpler predictors", [*heads, "SM shares: median", "p90", "skill"], rows, SKILL_NOTE)


def _ends(validation: Validation) -> list[Table]:
    ends, makespans = [], []
    for name, figures in validation.scores.items():
        all_of = {"set": name, "n": figures["n"], "within": figures["within_noise"]}
        ends.append({**all_of, "launches": "all", **figures["end_error"]})
        ends.append({**all_of, "launches": "all, beyond noise", **figures["beyond_noise"]})
        ends.append({**all_of, "launches": "all, noise", **figures["noise"]})
        kept = {"set": name, "launches": "reproducible", "n": figures["n_reproducible"], "within": float("nan")}
        ends.append({**kept, **(figures["reproducible_end_error"] or dict.fromkeys(all_of, float("nan")))})
        makespans.append({"name": name, **figures, **figures["makespan_error"]})
    rows = [[row[key] for key in ("set", "launches", "n", "median", "p90", "p95", "within")] for row in ends]
    shown = [
        (name, of, str(n), *(NONE if value != value else f"{value:.2%}" for value in errors), _share(within, of))
        for name, of, n, *errors, within in rows
    ]
    heads = ("set", "launches", "n", "median", "p90", "p95", "within")
    return [
        Table("End times", heads, shown, ENDS_NOTE),
        table_of(
            "Makespans, order of ends",
            makespans,
            "set = {name} | n = {scenarios} | median = {median:.2%} | p90 = {p90:.2%} | p95 = {p95:.2%} "
            "| rank correlation = {rank_correlation:.4f}",
        ),
    ]


def _share(within: float, launches: str) -> str:
    return f"{within:.0%}" if launches == "all, beyond noise" else NONE


def _slowdowns(validation: Validation) -> Table:
    each = validation.networks.get("each", [])
    groups = {"all": each}
    for mode in dict.fromkeys(pair["mode"] for pair in each):
        groups[mode] = [pair for pair in each if pair["mode"] == mode]
    for count, text in ((0, "neither network new"), (1, "one network new"), (2, "both networks new")):
        groups[text] = [pair for pair in each if pair["new"] == count]
    rows: list[dict[str, Any]] = []
    for group, some in groups.items():
        for side, columns in {"both": SIDES, **{name: (name,) for name in SIDES}}.items():
            errors = spread([pair[column]["error"] for column in columns for pair in some])
            if errors is not None:
                rows.append({"pairs": group, "side": side, "n": len(some), **errors})
    return percents("Slowdown of pairs of networks", rows, 3, SLOWDOWNS_NOTE)


def _halves(validation: Validation) -> Table:
    split = [
        {"set": name, "scenarios": half, "launches": of["n"], **brief(of)}
        for name, figures in validation.scores.items()
        for half, of in figures["halves"].items()
        if of is not None
    ]
    heads = ("end median", "end p90", "makespan median")
    return percents("Even and odd scenarios", split, 3, HALVES_NOTE, heads)


def _without_one(validation: Validation) -> Table:
    rows = []
    for label, sets in validation.without.items():
        named = {f"{name} {figure}": error for name, of in sets.items() for figure, error in of.items()}
        rows.append({"without": label, **{head.removesuffix("_median"): error for head, error in named.items()}})
    sampled = "".join(f"of {name} every {n}th is run; " for name, n in EVERY.items() if name in validation.sets)
    return percents("Without one mechanism", rows, 1, ABLATION_NOTE.format(sampled=sampled))


def _every_pair(validation: Validation) -> Table:
    each = validation.networks.get("each", [])
    faster = sum(pair[side]["measured"] < 1.0 for pair in each for side in SIDES)
    return table_of(
        EVERY_PAIR,
        each,
        "foreground beside background = {fg} beside {bg} | mode = {mode} "
        "| fg predicted = {foreground[predicted]:.2f} | fg measured = {foreground[measured]:.2f} "
        "| fg error = {foreground[error]:+z.1%} "
        "| bg predicted = {background[predicted]:.2f} | bg measured = {background[measured]:.2f} "
        "| bg error = {background[error]:+z.1%}",
        EVERY_PAIR_NOTE.format(count=2 * len(each), faster=faster),
    )


def percents(
    title: str, rows: list[dict[str, Any]], names: int, note: str = "", heads: Sequence[str] | None = None
) -> Table:
    """Errors behind the first ``names`` fields of each row; ``heads`` of the errors, if not their names."""
    values = frame(rows)
    values = values.set_index([*values.columns[:names]]).astype(float) if rows else values
    return table_of_numbers(title, [*values.index.names, *(heads or ())] if rows else [], values, ".2%", note)


def outcome(validation: Validation) -> str:
    """What came out and what did not, and a paragraph of why for networks and for kernels."""
    checks = validation.checks()
    off = [_said(check) for check in checks if not check.holds]
    first = (
        f"{len(checks) - len(off)} of {len(checks)} errors are within [their limits](#limits). "
        f"Beyond: {'; '.join(off) or 'none'}."
    )
    return "\n\n".join(part for part in (first, _of_networks(validation), _of_kernels(validation)) if part)


def _said(check: Limited) -> str:
    return f"{NAMES[check.set]}, {limited(check)} {check.error:.2%} ({check.limit:.2%})"


def _of_networks(validation: Validation) -> str:
    """Why networks are off."""
    sides = validation.network_skills
    if not sides:
        return ""
    skills = " and ".join(f"{of['constant']['skill'] or 0.0:+.2f} for {side}s" for side, of in sides.items())
    biases = " and ".join(
        f"{np.median([pair[side]['error'] for pair in validation.networks['each']]):+.1%} for {side}s" for side in sides
    )
    beside = [pair["background"]["measured"] for pair in validation.networks["each"]]
    lower, upper = np.percentile(beside, (25, 75))
    return (
        f"Why networks are off: their kernels have no counters, and take the demands of their class. Median errors are "
        f"{biases}. Half of the backgrounds are slowed down by {lower:.2f} to {upper:.2f}, so that a constant is near; "
        f"the skill over it is {skills}. What the L2 keeps of a network from one inference to the next is in the "
        f"model; what a kernel leaves there for the next one is not."
    )


def _of_kernels(validation: Validation) -> str:
    """A sentence on how far noise goes."""
    if not validation.scores:
        return ""
    within = ", ".join(f"{of['within_noise']:.0%} of {name}" for name, of in validation.scores.items())
    return (
        "Why kernels are off: which block finishes first decides what runs next, and repetitions differ too. Within "
        f"the noise of their repetitions are {within}."
    )
