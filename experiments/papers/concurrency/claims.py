"""The paper's numbered observations, each with the figures that support or contradict it.

Ten are numbered. Of three the text was not available, of the last four only the gist; which of the claims
below belongs to which of those four is our reading. A claim is judged by its sign in the paper's own setting
and counted in all others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpusched_env.experiments.lib.verdicts import Claim

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

SETTING = ["gpu", "pair", "arrivals"]
"""What all mechanisms are compared on, besides host speed and seed."""
PRIORITY, SLICING, MPS = "priority streams", "time slicing", "MPS"
PREEMPTIVE, RESERVED, DRAINING = "preemptive", "preemptive, SMs reserved", "preemptive, at block ends"
SPREAD = "preemptive, an SM a block"
OFFERED = (PRIORITY, SLICING, MPS)
"""Mechanisms that NVIDIA offers."""
EQUAL, SLOWER = 0.005, 0.05
"""Utilisations and slowdowns that differ by less are equal; training that is slower by more is slower."""
NAMES = {"slowdown": "turnaround", "variation": "deviation over mean", "training_speed": "training speed"}

Verdict = tuple[bool, str]
Judge = Callable[["DataFrame"], Verdict]
"""Gives the verdict from a setting's runs by mechanism, with ``slowdown``, ``training_speed`` and ``progress``."""


def percent(ratio: float) -> str:
    """``1.75`` as ``+75 %``."""
    return f"{100 * (ratio - 1):+z.0f} %"


def each(at: DataFrame, figure: str, mechanisms: tuple[str, ...] = OFFERED) -> str:
    """A figure of some mechanisms as text."""
    form = {"slowdown": percent, "utilisation": "{:.0%}".format}.get(figure, "{:.2f}".format)
    return ", ".join(f"{name} {form(at[figure][name])}" for name in mechanisms)


def least(at: DataFrame, figure: str) -> str:
    """The one of NVIDIA's mechanisms with the lowest figure."""
    return min(OFFERED, key=at[figure].__getitem__)


def most(at: DataFrame, figure: str) -> str:
    """The one of NVIDIA's mechanisms with the highest figure."""
    return max(OFFERED, key=at[figure].__getitem__)


def beats(at: DataFrame, figure: str, mechanism: str, sign: float) -> bool:
    """Whether a mechanism's figure is above (``sign`` 1) or below (-1) those of the other two."""
    of = at[figure]
    return all(sign * of[mechanism] > sign * of[other] for other in OFFERED if other != mechanism)


def _waits(at: DataFrame) -> Verdict:
    o = at.loc[PRIORITY]
    return o.slowdown > 1.0 and o.waiting_us > 0.0, (
        f"turnaround {percent(o.slowdown)}; a request's {o.kernels:.0f} kernels wait "
        f"{o.waiting_us / 1e3:.2f} ms for room and run {o.lengthening_us / 1e3:.2f} ms longer"
    )


def _sliced_is_poor(at: DataFrame) -> Verdict:
    speed = at.training_speed[SLICING]
    text = f"SMs busy: {each(at, 'utilisation')}; training at {speed:.2f} of its speed alone"
    return beats(at, "utilisation", SLICING, -1.0), text


def _mps_contends(at: DataFrame) -> Verdict:
    o = at.loc[MPS]
    return o.lengthening_us > 0.0 and o.training_stretch > 1.0, (
        f"kernels from first to last block: {o.lengthening_us / 1e3:.2f} ms longer a request, "
        f"the training's {o.training_stretch:.2f} times as long"
    )


def _no_mechanism_has_both(at: DataFrame) -> Verdict:
    quickest, fastest = least(at, "slowdown"), most(at, "training_speed")
    return quickest != fastest, f"lowest turnaround: {quickest}; fastest training: {fastest}"


def _preemption_wins(at: DataFrame) -> Verdict:
    o, best = at.loc[PREEMPTIVE], at.slowdown[least(at, "slowdown")]
    text = f"turnaround {percent(o.slowdown)} (best of the three {percent(best)})"
    return o.slowdown < best, f"{text}, deviation over mean {o.variation:.2f}"


def _preemption_is_affordable(at: DataFrame) -> Verdict:
    o = at.loc[RESERVED]
    return o.progress > at.progress[SLICING], (
        f"{o.preemptions:.1f} saves a request, {o.full_save_us:.0f} us for a full GPU; "
        f"progress of both tasks {o.progress:.2f} with SMs reserved, {at.progress[PREEMPTIVE]:.2f} without "
        f"({each(at, 'progress')}; at block ends {at.progress[DRAINING]:.2f}), the training's {o.training_speed:.2f}"
    )


def _room_kept_open(at: DataFrame) -> Verdict:
    once, kept = at.loc[PREEMPTIVE], at.loc[RESERVED]
    return kept.preemptions < once.preemptions and kept.slowdown <= once.slowdown + EQUAL, (
        f"saves a request {once.preemptions:.1f} to {kept.preemptions:.1f}, "
        f"turnaround {percent(once.slowdown)} to {percent(kept.slowdown)}, "
        f"training speed {once.training_speed:.2f} to {kept.training_speed:.2f}"
    )


def _occupancy_misleads(at: DataFrame) -> Verdict:
    """Whether some mechanism keeps no fewer SMs busy than another, and still gets less of the training done."""
    busy, speed = at.utilisation, at.training_speed
    names = (*OFFERED, PREEMPTIVE, SPREAD)
    pairs = [(a, b) for a in names for b in names if busy[a] > busy[b] - EQUAL and speed[a] < speed[b] - SLOWER]
    if not pairs:
        return False, "busy SMs rank the mechanisms as training speed does"
    a, b = max(pairs, key=lambda pair: speed[pair[1]] - speed[pair[0]])
    share = f"{busy[a]:.1%} against {busy[b]:.1%} of the SMs busy"
    return True, f"{a} and {b}: {share}, training at {speed[a]:.2f} against {speed[b]:.2f}"


def lowest(figure: str, mechanism: str) -> Judge:
    """A mechanism has the lowest of the three."""
    return lambda at: (beats(at, figure, mechanism, -1.0), f"{NAMES[figure]}: {each(at, figure)}")


def highest(figure: str, mechanism: str) -> Judge:
    """A judge of whether a mechanism has the highest figure of the three."""
    return lambda at: (beats(at, figure, mechanism, 1.0), f"{NAMES[figure]}: {each(at, figure)}")


def rising(figure: str, *mechanisms: str) -> Judge:
    """A judge of whether a figure rises along the mechanisms."""

    def judge(at: DataFrame) -> Verdict:
        rises = all(at[figure][one] < at[figure][next_one] for one, next_one in itertools.pairwise(mechanisms))
        return rises, f"{NAMES[figure]}: {each(at, figure, mechanisms)}"

    return judge


TEXT_UNKNOWN = "the text of this observation was not available to us"
HOSTS = (
    "It depends on how fast hosts are, and on how much threads of one process slow each other: see the table by host "
    "speed. The first table has what an H200 showed of it, without MPS"
)
COPIES = "the recorded requests copy no more than their answers, and copy engines are not sliced in the simulator"
ORDER: Claim[DataFrame] = Claim(
    "results",
    "Turnaround: time slicing below MPS below priority streams",
    rising("slowdown", SLICING, MPS, PRIORITY),
    HOSTS,
)
CLAIMS: tuple[Claim[DataFrame], ...] = (
    Claim("O1", "Priority streams: running blocks are not preempted, requests wait for them", _waits),
    Claim(
        "O1",
        "Priority streams: the delay compounds over a request's kernels, beyond that of a slice",
        rising("slowdown", SLICING, PRIORITY),
    ),
    Claim(
        "O1",
        "Priority streams: turnaround is less predictable than in slices",
        rising("variation", SLICING, PRIORITY),
    ),
    Claim("O2", "Time slicing: the lowest turnaround of the three", lowest("slowdown", SLICING)),
    Claim("O2", "Time slicing: the most predictable turnaround of the three", lowest("variation", SLICING)),
    Claim("O2", "Time slicing: the poorest utilisation, tasks never overlap", _sliced_is_poor),
    Claim("O2", "Time slicing: unless memory transfers contend", None, COPIES),
    Claim("O3", "", None, TEXT_UNKNOWN),
    Claim("O4", "", None, TEXT_UNKNOWN),
    Claim("O5", "MPS: the best utilisation, by training time", highest("training_speed", MPS)),
    Claim("O5", "MPS: contention on the SMs lengthens both tasks' kernels", _mps_contends),
    Claim("O6", "", None, TEXT_UNKNOWN),
    Claim("O7", "No mechanism gives both low turnaround and high utilisation", _no_mechanism_has_both),
    Claim("O7", "Fine-grained preemption: turnaround below all of them", _preemption_wins),
    Claim(
        "O8",
        "Fine-grained preemption: its cost is bearable, more gets done in all than in slices",
        _preemption_is_affordable,
    ),
    Claim("O9", "Room kept open for close kernels hides part of the cost", _room_kept_open),
    Claim("O10", "Occupancy misleads: utilisation should be measured by best-effort progress", _occupancy_misleads),
    ORDER,
    Claim(
        "results",
        "Training time added: most by time slicing, least by MPS",
        rising("training_speed", SLICING, PRIORITY, MPS),
    ),
)
