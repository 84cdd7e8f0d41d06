"""The paper's numbered observations, each with the figures that support or contradict it.

Ten are numbered. Of three the text was not available, of the last four only the gist; which of the claims
below belongs to which of those four is our reading. A claim is judged by its sign in the paper's own setting
and counted in all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpusched_env.experiments.reproduce.concurrency.runs import PAPERS, Outcome, Runs, Setting

PRIORITY, SLICING, MPS = "priority streams", "time slicing", "MPS"
PREEMPTIVE, KEPT_OPEN, DRAINING = "preemptive", "preemptive, room kept open", "preemptive, at block ends"
OFFERED = (PRIORITY, SLICING, MPS)
"""What NVIDIA offers."""
EQUAL, SLOWER = 0.005, 0.05
"""Utilisations that differ by less are equal; training that is slower by more is slower."""

Verdict = tuple[bool, str]
Look = Callable[[str], Outcome]
"""The outcome of a mechanism in the setting at hand."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an observation says, and how it is judged."""

    observation: str
    text: str
    judge: Callable[[Look], Verdict] | None
    """``None``: not scored, for the reason in ``note``."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim with its evidence."""

    observation: str
    claim: str
    holds: bool | None
    """In the paper's own setting; ``None``: not scored."""
    evidence: str
    agree: int
    """Settings in which it holds, of ``settings``."""
    settings: int
    note: str


def findings(runs: Runs) -> list[Finding]:
    """Every claim, judged."""
    return [_judged(runs, claim) for claim in CLAIMS]


def _judged(runs: Runs, claim: Claim) -> Finding:
    judge = claim.judge
    if judge is None:
        return Finding(claim.observation, claim.text, None, "", 0, 0, claim.note)

    def at(setting: Setting) -> Verdict:
        return judge(lambda mechanism: runs.outcome(setting, mechanism))

    holds, evidence = at(PAPERS)
    agree = sum(at(setting)[0] for setting in runs.settings)
    return Finding(claim.observation, claim.text, holds, evidence, agree, len(runs.settings), claim.note)


def percent(ratio: float) -> str:
    """``1.75`` as ``+75 %``."""
    return f"{100 * (ratio - 1):+.0f} %"


def _each(look: Look, figure: Callable[[Outcome], str], mechanisms: tuple[str, ...] = OFFERED) -> str:
    return ", ".join(f"{name} {figure(look(name))}" for name in mechanisms)


def _waits(look: Look) -> Verdict:
    outcome = look(PRIORITY)
    f = outcome.figures
    text = (
        f"turnaround {percent(outcome.slowdown)}; a request's {f.kernels:.0f} kernels wait "
        f"{f.waiting_us / 1e3:.2f} ms for room and run {f.lengthening_us / 1e3:.2f} ms longer"
    )
    return outcome.slowdown > 1.0 and f.waiting_us > 0.0, text


def _compounds(look: Look) -> Verdict:
    return look(PRIORITY).slowdown > look(SLICING).slowdown, _each(
        look, lambda o: percent(o.slowdown), (PRIORITY, SLICING)
    )


def _less_predictable(look: Look) -> Verdict:
    text = "deviation over mean: " + _each(look, lambda o: f"{o.figures.variation:.2f}", (PRIORITY, SLICING))
    return look(PRIORITY).figures.variation > look(SLICING).figures.variation, text


def _sliced_is_low(look: Look) -> Verdict:
    lowest = min(OFFERED, key=lambda name: look(name).slowdown)
    return lowest == SLICING, "turnaround: " + _each(look, lambda o: percent(o.slowdown))


def _sliced_is_predictable(look: Look) -> Verdict:
    lowest = min(OFFERED, key=lambda name: look(name).figures.variation)
    return lowest == SLICING, "deviation over mean: " + _each(look, lambda o: f"{o.figures.variation:.2f}")


def _sliced_is_poor(look: Look) -> Verdict:
    poorest = min(OFFERED, key=lambda name: look(name).figures.utilisation)
    text = "SMs busy: " + _each(look, lambda o: f"{o.figures.utilisation:.0%}")
    return poorest == SLICING, f"{text}; training at {look(SLICING).speed:.2f} of its speed alone"


def _mps_is_fast(look: Look) -> Verdict:
    best = max(OFFERED, key=lambda name: look(name).speed)
    return best == MPS, "training speed: " + _each(look, lambda o: f"{o.speed:.2f}")


def _mps_contends(look: Look) -> Verdict:
    f = look(MPS).figures
    text = (
        f"kernels from first to last block: {f.lengthening_us / 1e3:.2f} ms longer a request, "
        f"the training's {f.training_stretch:.2f} times as long"
    )
    return f.lengthening_us > 0.0 and f.training_stretch > 1.0, text


def _no_mechanism_has_both(look: Look) -> Verdict:
    quickest = min(OFFERED, key=lambda name: look(name).slowdown)
    fastest = max(OFFERED, key=lambda name: look(name).speed)
    return quickest != fastest, f"lowest turnaround: {quickest}; fastest training: {fastest}"


def _preemption_wins(look: Look) -> Verdict:
    ours = look(PREEMPTIVE)
    best = min(look(name).slowdown for name in OFFERED)
    text = f"turnaround {percent(ours.slowdown)} (best of the three {percent(best)})"
    return ours.slowdown < best, f"{text}, deviation over mean {ours.figures.variation:.2f}"


def _preemption_is_affordable(look: Look) -> Verdict:
    ours, sliced = look(PREEMPTIVE), look(SLICING)
    text = (
        f"{ours.figures.preemptions:.1f} saves a request, {ours.figures.full_save_us:.0f} us for a full GPU; "
        f"progress of both tasks {ours.progress:.2f} ({_each(look, lambda o: f'{o.progress:.2f}')}; at block ends "
        f"{look(DRAINING).progress:.2f}), the training's {ours.speed:.2f}"
    )
    return ours.progress > sliced.progress, text


def _room_kept_open(look: Look) -> Verdict:
    at_once, kept = look(PREEMPTIVE), look(KEPT_OPEN)
    text = (
        f"saves a request {at_once.figures.preemptions:.1f} to {kept.figures.preemptions:.1f}, "
        f"turnaround {percent(at_once.slowdown)} to {percent(kept.slowdown)}, "
        f"training speed {at_once.speed:.2f} to {kept.speed:.2f}"
    )
    fewer = kept.figures.preemptions < at_once.figures.preemptions
    return fewer and kept.slowdown <= at_once.slowdown, text


def _occupancy_misleads(look: Look) -> Verdict:
    """Whether some mechanism keeps no fewer SMs busy than another, and still gets less of the training done."""
    names = (*OFFERED, PREEMPTIVE)
    pairs = [
        (a, b)
        for a in names
        for b in names
        if look(a).figures.utilisation > look(b).figures.utilisation - EQUAL and look(a).speed < look(b).speed - SLOWER
    ]
    if not pairs:
        return False, "busy SMs rank the mechanisms as training speed does"
    a, b = max(pairs, key=lambda pair: look(pair[1]).speed - look(pair[0]).speed)
    busy = f"{look(a).figures.utilisation:.1%} against {look(b).figures.utilisation:.1%} of the SMs busy"
    return True, f"{a} and {b}: {busy}, training at {look(a).speed:.2f} against {look(b).speed:.2f}"


def _order_of_turnaround(look: Look) -> Verdict:
    order = [look(name).slowdown for name in (SLICING, MPS, PRIORITY)]
    return order == sorted(order), _each(look, lambda o: percent(o.slowdown), (SLICING, MPS, PRIORITY))


def _order_of_training(look: Look) -> Verdict:
    order = [look(name).speed for name in (SLICING, PRIORITY, MPS)]
    return order == sorted(order), "training speed: " + _each(look, lambda o: f"{o.speed:.2f}")


TEXT_UNKNOWN = "the text of this observation was not available to us"
CLOSE = "The two are close: in shorter runs the order can be the other way round"
ON_HARDWARE = (
    "Nor is it the order on a real H100 (see below), where sharing an interpreter alone slows three of four "
    "networks' requests by more than half: hosts and GPUs have changed since"
)
CLAIMS = (
    Claim("O1", "Priority streams: running blocks are not preempted, requests wait for them", _waits),
    Claim(
        "O1",
        "Priority streams: the delay compounds over a request's kernels, beyond that of a slice",
        _compounds,
        CLOSE,
    ),
    Claim("O1", "Priority streams: turnaround is less predictable than in slices", _less_predictable),
    Claim("O2", "Time slicing: the lowest turnaround of the three", _sliced_is_low, CLOSE),
    Claim("O2", "Time slicing: the most predictable turnaround of the three", _sliced_is_predictable),
    Claim("O2", "Time slicing: the poorest utilisation, tasks never overlap", _sliced_is_poor),
    Claim(
        "O2",
        "Time slicing: unless memory transfers contend",
        None,
        "the recorded requests copy no more than their answers, and copy engines are not sliced in the simulator",
    ),
    Claim("O3", "", None, TEXT_UNKNOWN),
    Claim("O4", "", None, TEXT_UNKNOWN),
    Claim("O5", "MPS: the best utilisation, by training time", _mps_is_fast),
    Claim("O5", "MPS: contention on the SMs lengthens both tasks' kernels", _mps_contends),
    Claim("O6", "", None, TEXT_UNKNOWN),
    Claim("O7", "No mechanism gives both low turnaround and high utilisation", _no_mechanism_has_both),
    Claim("O7", "Fine-grained preemption: turnaround below all of them", _preemption_wins),
    Claim(
        "O8",
        "Fine-grained preemption: its cost is bearable, more gets done in all than in slices",
        _preemption_is_affordable,
        "All blocks on the SMs that a kernel lacks are saved; back-to-back requests leave no time between",
    ),
    Claim("O9", "Room kept open between close kernels hides part of the cost", _room_kept_open),
    Claim("O10", "Occupancy misleads: utilisation should be measured by best-effort progress", _occupancy_misleads),
    Claim("results", "Turnaround: time slicing below MPS below priority streams", _order_of_turnaround, ON_HARDWARE),
    Claim("results", "Training time added: most by time slicing, least by MPS", _order_of_training),
)
