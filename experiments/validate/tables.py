"""The tables of a validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpusched_env.display.frame import frame
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.verdicts import record, table_of, table_of_numbers
from gpusched_env.experiments.validate.controls import control_tables
from gpusched_env.experiments.validate.recordings import KERNEL_SETS, MODEL_PAIRS
from gpusched_env.experiments.validate.rivals import SIDES
from gpusched_env.experiments.validate.scoring import brief, spread

if TYPE_CHECKING:
    from gpusched_env.experiments.validate.results import Limited, Validation

NAMES = {**{name: name for name in KERNEL_SETS}, MODEL_PAIRS: "pairs of networks"}
EVERY_PAIR = "Every pair of networks"
ALL_ON = "everything on"
EVERY = {"sequences": 5}
"""Of these sets an ablation runs only every n-th scenario."""
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
    """In the order of the page; some may have no rows."""
    checks = [record(c) | {"name": NAMES[c.set], "what": limited(c)} for c in validation.checks()]
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
    ]


def limited(check: Limited) -> str:
    """What an error that has a limit is of."""
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
