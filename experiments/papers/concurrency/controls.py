"""Each claim beside a control: one mechanism switched off, everything else as it was.

A control is another run that stands in the place of a mechanism's, and the claim is judged again. Where the claim's own
mechanism is off, the claim has to fail. Where something else is off on which it may rest, the control says whether it
does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.criteria import Criterion
from gpusched_env.experiments.lib.verdicts import SHOWN, UNDECIDED, Claim, verdict_of
from gpusched_env.experiments.papers.concurrency.claims import (
    CLAIMS,
    MPS,
    PREEMPTIVE,
    PRIORITY,
    RESERVED,
    SLICING,
    SPREAD,
)
from gpusched_env.experiments.papers.concurrency.runs import APART, SAVED, UNCONTENDED, UNSLICED, WHOLE

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

COMPARED, DESCRIPTION = "compared", "description"
RESTS, FREE = "rests on it", "does not need it"


@dataclass(frozen=True, slots=True)
class Control:
    """What is switched off, and for which mechanism which other run stands in."""

    off: str
    mechanism: str
    instead: str
    own: bool = True
    """Whether this is the claim's own mechanism, not something that the claim may rest on."""
    compared: bool = False
    """The claim itself compares the mechanism with what stands in: that it fails follows from its coming out."""


BLOCKS = Control("running blocks that stay: they are saved for requests", PRIORITY, SAVED)
HOSTS = Control("hosts that slow each other", PRIORITY, APART, own=False)
SLICES = Control("slices: a context keeps the GPU for 1 s", SLICING, UNSLICED)
TURNS = Control("contexts that take turns: MPS", SLICING, MPS, compared=True)
CONTROLS: Final[dict[str, tuple[Control, ...]]] = {
    "Priority streams: running blocks are not preempted, requests wait for them": (BLOCKS, HOSTS),
    "Priority streams: the delay compounds over a request's kernels, beyond that of a slice": (BLOCKS, HOSTS),
    "Priority streams: turnaround is less predictable than in slices": (BLOCKS, HOSTS),
    "Time slicing: the lowest turnaround of the three": (SLICES,),
    "Time slicing: the most predictable turnaround of the three": (SLICES,),
    "Time slicing: the poorest utilisation, tasks never overlap": (TURNS,),
    "MPS: the best utilisation, by training time": (
        Control("blocks of both at once: contexts take turns", MPS, SLICING, compared=True),
    ),
    "MPS: contention on the SMs lengthens both tasks' kernels": (
        Control("contention: blocks run as if alone on the GPU", MPS, UNCONTENDED),
    ),
    "Fine-grained preemption: turnaround below all of them": (
        Control("preemption: priorities alone, hosts apart as under preemption", PREEMPTIVE, APART),
    ),
    "Fine-grained preemption: its cost is bearable, more gets done in all than in slices": (
        Control("the fine grain: whole kernels are saved", RESERVED, WHOLE),
    ),
    "Room kept open for close kernels hides part of the cost": (
        Control("room kept open: none", RESERVED, PREEMPTIVE, compared=True),
    ),
    "Occupancy misleads: utilisation should be measured by best-effort progress": (
        Control("more SMs than blocks need: as few as hold them", SPREAD, PREEMPTIVE),
    ),
    "Turnaround: time slicing below MPS below priority streams": (SLICES, HOSTS),
    "Training time added: most by time slicing, least by MPS": (TURNS,),
}
"""The controls of a claim, by its text."""
DESCRIPTIONS: Final = {
    "No mechanism gives both low turnaround and high utilisation": (
        "it says of the three, as they are, that none is best at both: none of them is its cause, and what would have "
        "to be switched off is that tasks share a GPU at all"
    ),
}
"""Why no mechanism can be switched off for a claim."""


SHORT: Final = {
    "Priority streams: running blocks are not preempted, requests wait for them": "requests wait for running blocks",
    "Priority streams: the delay compounds over a request's kernels, beyond that of a slice": "delays compound",
    "Priority streams: turnaround is less predictable than in slices": "priority streams less predictable than slices",
    "Time slicing: the lowest turnaround of the three": "lowest turnaround in slices",
    "Time slicing: the most predictable turnaround of the three": "most predictable in slices",
    "Time slicing: the poorest utilisation, tasks never overlap": "poorest utilisation in slices",
    "MPS: the best utilisation, by training time": "best utilisation under MPS",
    "MPS: contention on the SMs lengthens both tasks' kernels": "contention under MPS",
    "Fine-grained preemption: turnaround below all of them": "lowest turnaround by preemption",
    "Fine-grained preemption: its cost is bearable, more gets done in all than in slices": "preemption is affordable",
    "Room kept open for close kernels hides part of the cost": "room kept open hides cost",
    "Occupancy misleads: utilisation should be measured by best-effort progress": "occupancy misleads",
    "Turnaround: time slicing below MPS below priority streams": "order of turnarounds",
    "Training time added: most by time slicing, least by MPS": "order of training times",
    "No mechanism gives both low turnaround and high utilisation": "no mechanism has both",
}
"""Claims within a sentence."""


@dataclass(frozen=True, slots=True)
class ControlledClaim:
    """A claim with something on that it is about, and with that off."""

    observation: str
    claim: str
    off: str
    comes_out: bool | None
    """Whether the claim comes out; ``None``: seeds disagree."""
    figures: str
    without: bool | None
    figures_without: str
    own: bool = True
    compared: bool = False

    @property
    def verdict(self) -> str:
        """The verdict on the claim's own mechanism: ``shown``, ``not shown`` (it comes out without it as well),
        ``compared``, ``off`` or ``undecided``; of something else whether it rests on it; ``description``."""
        if not self.off:
            return DESCRIPTION
        if self.comes_out is None or self.without is None:
            return UNDECIDED
        found = verdict_of(self.comes_out, self.without)
        if not self.own and self.comes_out:
            return FREE if self.without else RESTS
        return COMPARED if found == SHOWN and self.compared else found

    @property
    def holds(self) -> bool | None:
        """Whether it comes out, and fails without its mechanism; ``None``: not told, or about something else."""
        if not self.own or self.verdict in (DESCRIPTION, UNDECIDED):
            return None
        return self.verdict in (SHOWN, COMPARED)

    def as_criterion(self) -> Criterion:
        return Criterion(self.claim, self.figures, "comes out, and not with that off", math.nan, self.holds)


def controlled(by_seed: Sequence[DataFrame], mean: DataFrame) -> list[ControlledClaim]:
    """Every claim that is judged, with its controls, in the order of claims.

    Args:
        by_seed: outcomes by mechanism in the paper's setting, of every seed.
        mean: their means.
    """
    found = []
    for claim in CLAIMS:
        if claim.judge is None:
            continue
        on, figures = _judged(claim, by_seed, mean, None)
        if claim.text in DESCRIPTIONS:
            found.append(
                ControlledClaim(claim.observation, claim.text, "", on, figures, None, DESCRIPTIONS[claim.text])
            )
        for control in CONTROLS.get(claim.text, ()):
            off, without = _judged(claim, by_seed, mean, control)
            found.append(
                ControlledClaim(
                    claim.observation, claim.text, control.off, on, figures, off, without, control.own, control.compared
                )
            )
    return found


def _judged(
    claim: Claim[DataFrame], by_seed: Sequence[DataFrame], mean: DataFrame, control: Control | None
) -> tuple[bool | None, str]:
    """Whether a claim comes out (``None``: seeds disagree) of the means, and their figures."""
    assert claim.judge is not None
    verdict, figures = claim.judge(_switched_off(mean, control))
    each = {bool(claim.judge(_switched_off(of, control))[0]) for of in by_seed}
    return (bool(verdict) if each == {bool(verdict)} else None), figures


def _switched_off(outcomes: DataFrame, control: Control | None) -> DataFrame:
    """Outcomes in which the control's run stands in the place of its mechanism's."""
    if control is None:
        return outcomes
    other = outcomes.copy()
    other.loc[control.mechanism] = outcomes.loc[control.instead]
    return other


NOTE = (
    "*Shown*: the claim comes out, and fails where its mechanism is switched off. *Compared*: so it does, but the "
    "claim is itself the comparison with what stands in, so that this says no more than that it comes out. *Not "
    "shown*: it comes out without its mechanism as well. *Rests on it*, *does not need it*: of something else that is "
    "switched off. *Description*: no mechanism can be switched off. Same requests, seeds and setting, everything else "
    "as it was. Without contention blocks of one kernel do not slow each other either, so the training is shorter."
)


def controls_table(rows: Sequence[ControlledClaim]) -> Table:
    """Every claim beside its controls."""
    shown = [
        (row.observation, row.claim, row.figures, row.off or NONE, row.figures_without, row.verdict) for row in rows
    ]
    return Table("Claims and controls", ("", "claim", "ours", "switched off", "then", "verdict"), shown, NOTE)


def claims_with(rows: Sequence[ControlledClaim], *verdicts: str) -> list[str]:
    """Claims that have one of the verdicts in all controls of their own mechanism."""
    own = [row for row in rows if row.own]
    claims = dict.fromkeys(row.claim for row in own)
    return [claim for claim in claims if all(row.verdict in verdicts for row in own if row.claim == claim)]


def outcome(rows: Sequence[ControlledClaim], lock: str, busy: float) -> str:
    """Why it comes out as it does: what the page says next.

    Args:
        rows: claims with their controls.
        lock: what the recording says of the interpreter's lock.
        busy: share of the SMs' time that requests take alone, 0 to 1.
    """

    def each(*verdicts: str) -> str:
        return _listed(claims_with(rows, *verdicts))

    rest = list(dict.fromkeys(row.claim for row in rows if row.verdict == RESTS))
    why = f"Why: {lock}; requests alone keep the SMs busy for {busy:.0%} of the time, so hosts decide most. "
    if rest:
        why += f"Only where hosts of one process slow each other come out: {_listed(rest)}. "
    return (
        f"{why}How fast the paper's hosts were is not known, and published turnarounds hang on it.\n\n"
        f"Of the claims that are simulated these come out and fail without their mechanism: {each(SHOWN)}; these come "
        f"out without it as well, which says nothing of it: {each('not shown')}."
    )


def _listed(claims: Sequence[str]) -> str:
    return "; ".join(SHORT[claim] for claim in claims) or "none"
