"""The figures of a validation as plain data and as tables, and whether they hold."""

from __future__ import annotations

import itertools
from typing import Any

from gpusched_env import __version__
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.validate.recordings import KERNEL_SETS, MODEL_PAIRS
from gpusched_env.experiments.validate.run import EVERY, Validation
from gpusched_env.experiments.validate.scoring import halves, score, score_pairs, worst_launches

CALIBRATED_ON = "h100-sxm"
"""The GPU whose recordings the constants were read off."""
TRANSFER = 1.3
"""Errors on other GPUs may be this many times as large."""
LIMITS: dict[str, dict[str, float]] = {
    "pairs": {"median": 0.012, "p90": 0.07, "makespan median": 0.012},
    "mixes": {"median": 0.022, "p90": 0.11, "makespan median": 0.025},
    "sequences": {"median": 0.03, "p90": 0.09, "makespan median": 0.025},
    MODEL_PAIRS: {"median": 0.08, "p90": 0.18},
}
"""Largest errors that hold: of reproducible end times, of makespans; of slowdowns for pairs of networks."""
NAMES = {**{name: name for name in KERNEL_SETS}, MODEL_PAIRS: "pairs of networks"}
SIDES = {"slowdown_error": "both", "foreground_error": "foreground", "background_error": "background"}
EVERY_PAIR = "Every pair of networks"
ABLATION_NOTE = """\
The same reproducible ends and makespans with one mechanism switched off at a time; {sampled}pairs of networks are not \
run. *Carve-out*: every SM has all of its shared memory at all times. *Scale*: kernels take what their work says, not \
their solo duration. *Timer*: the kernel that releases the streams holds an SM.
"""
EVERY_PAIR_NOTE = """\
Slowdowns, predicted and measured. Of {count} recorded ones, {faster} are below 1: those networks were recorded faster \
beside the other than alone, which no law of sharing gives.
"""


def results_dict(validation: Validation) -> dict[str, Any]:
    """Everything that was found, as plain values; errors are relative (0.01: 1 %).

    The sets that the folder has are keys of their own; ``halves`` are scenarios of even and odd number.
    """
    recordings = validation.recordings
    data: dict[str, Any] = {"gpu": validation.gpu.name, "version": __version__, "folder": str(recordings.folder)}
    for name, predictions in validation.sets.items():
        data[name] = {**score(predictions), "scenarios": len(predictions), "halves": halves(predictions)}
    if recordings.model_pairs is not None:
        found = score_pairs(validation.model_pairs) if validation.model_pairs else {"n": 0}
        data[MODEL_PAIRS] = {**found, "skipped": len(recordings.skipped)}
    if validation.ablation:
        without = {
            label: {name: _brief(score(predictions)) for name, predictions in sets.items()}
            for label, sets in validation.ablation.items()
        }
        data["ablation"] = {"every": {name: EVERY.get(name, 1) for name in validation.sets}, "without": without}
    data["worst"] = [
        {"set": w.set_name, "scenario": w.prediction.scenario.id, "launch": w.launch, "error": w.error}
        for w in worst_launches(validation.sets)
    ]
    data["limits"] = limits(data)
    data["holds"] = all(limit["holds"] for limit in data["limits"])
    return data


def _brief(figures: dict[str, Any]) -> dict[str, float | None]:
    """What an ablation table shows of a set."""
    ends = figures["reproducible_end_error"] or {"median": None, "p90": None}
    return {
        "median": ends["median"],
        "p90": ends["p90"],
        "makespan_median": figures["makespan_error"]["median"],
    }


def limits(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The errors of :func:`results_dict` that have limits, of the sets that are there."""
    factor = 1.0 if data["gpu"] == CALIBRATED_ON else TRANSFER
    found = []
    for name, largest in LIMITS.items():
        figures = data.get(name, {})
        errors = dict(figures.get("reproducible_end_error") or figures.get("slowdown_error") or {})
        if "makespan_error" in figures:
            errors["makespan median"] = figures["makespan_error"]["median"]
        for figure, limit in largest.items():
            if figure in errors:
                row = {"set": name, "figure": figure, "error": errors[figure], "limit": limit * factor}
                found.append({**row, "holds": errors[figure] <= limit * factor})
    return found


def summary_line(data: dict[str, Any]) -> str:
    """One line that sums up: how many figures hold, and the one nearest to its limit or furthest beyond it."""
    checks = data["limits"]
    if not checks:
        return f"FAILED: validation on {data['gpu']}: nothing to compare"
    worst = max(checks, key=lambda check: float(check["error"] / check["limit"]))
    return (
        f"{'OK' if data['holds'] else 'FAILED'}: validation on {data['gpu']}: "
        f"{sum(check['holds'] for check in checks)} of {len(checks)} errors within limits; "
        f"worst {worst['set']}, {worst['figure']}: {worst['error']:.2%} (limit {worst['limit']:.2%})"
    )


def tables(data: dict[str, Any]) -> list[Table]:
    """Every table of :func:`results_dict`; some have no rows."""
    sets = {NAMES[name]: data[name] for name in KERNEL_SETS if name in data}
    pairs = data.get(MODEL_PAIRS, {})
    three = ("median", "p90", "p95")
    checks = [
        (NAMES[c["set"]], _limited(c), percent(c["error"]), percent(c["limit"]), "holds" if c["holds"] else "off")
        for c in data["limits"]
    ]
    ends = [
        (name, which, str(figures[count]), *_percents(figures[key], three))
        for name, figures in sets.items()
        for which, key, count in (
            ("all", "end_error", "n"),
            ("reproducible", "reproducible_end_error", "n_reproducible"),
        )
    ]
    makespans = [
        (name, str(f["scenarios"]), *_percents(f["makespan_error"], three), f"{f['rank_correlation']:.4f}")
        for name, f in sets.items()
    ]
    networks = [(side, str(pairs["n"]), *_percents(pairs[key], three)) for key, side in SIDES.items() if key in pairs]
    split = [
        (
            *(name, half, str(figures["n_reproducible"])),
            *_percents(figures["reproducible_end_error"], ("median", "p90")),
            percent(figures["makespan_error"]["median"]),
        )
        for name, half in itertools.product(sets, ("even", "odd"))
        if (figures := sets[name]["halves"][half]) is not None
    ]
    return [
        Table("Limits", ("set", "figure", "error", "limit", ""), checks),
        Table("End times", ("set", "launches", "n", *three), ends),
        Table("Makespans, order of ends", ("set", "n", *three, "rank correlation"), makespans),
        Table("Slowdown of pairs of networks", ("side", "pairs", *three), networks),
        Table(
            "Even and odd scenarios",
            ("set", "scenarios", "reproducible", "end median", "end p90", "makespan median"),
            split,
        ),
        _without_one(data.get("ablation", {"every": {}, "without": {}}), list(sets)),
        _every_pair(pairs.get("each", [])),
    ]


def _without_one(ablation: dict[str, Any], sets: list[str]) -> Table:
    rows = [
        (label, *(cell for name in sets for cell in _percents(found[name], ("median", "p90", "makespan_median"))))
        for label, found in ablation["without"].items()
    ]
    heads = ("without", *(f"{name} {what}" for name in sets for what in ("median", "p90", "makespan")))
    sampled = "".join(f"of {name} every {n}th is run; " for name, n in ablation["every"].items() if n > 1)
    return Table("Without one mechanism", heads, rows, ABLATION_NOTE.format(sampled=sampled))


def _every_pair(each: list[dict[str, Any]]) -> Table:
    sides = [[pair["foreground"], pair["background"]] for pair in each]
    rows = [
        (
            *(f"{pair['fg']} beside {pair['bg']}", pair["mode"]),
            *(c for s in both for c in (f"{s['predicted']:.2f}", f"{s['measured']:.2f}", f"{s['error']:+.1%}")),
        )
        for pair, both in zip(each, sides, strict=True)
    ]
    faster = sum(side["measured"] < 1.0 for both in sides for side in both)
    heads = (f"{side} {what}" for side in ("fg", "bg") for what in ("predicted", "measured", "error"))
    note = EVERY_PAIR_NOTE.format(count=2 * len(each), faster=faster)
    return Table(EVERY_PAIR, ("foreground beside background", "mode", *heads), rows, note)


def _limited(check: dict[str, Any]) -> str:
    if check["set"] == MODEL_PAIRS:
        return f"slowdown, {check['figure']}"
    return "makespan, median" if check["figure"] == "makespan median" else f"end, {check['figure']}"


def _percents(errors: dict[str, float | None] | None, which: tuple[str, ...]) -> list[str]:
    values = [(errors or {}).get(name) for name in which]
    return [NONE if value is None else percent(value) for value in values]


def percent(value: float) -> str:
    """``0.0123`` as ``1.23 %``."""
    return f"{100 * value:.2f} %"
