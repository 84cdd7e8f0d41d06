"""What the paper says of time slicing and priority streams, judged on the recording of its networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpusched_env.experiments.lib.verdicts import Finding
from gpusched_env.experiments.papers.concurrency.claims import PRIORITY, SLICING
from gpusched_env.experiments.papers.concurrency.shared import LAUNCHERS, NETWORKS, shared_rows
from gpusched_env.experiments.papers.concurrency.shared_tables import LAUNCHED, SharedSide

BY: Final = ", launched by "
ERRORS: Final = 2.0
"""Standard errors by which means differ; by less they are taken to be equal."""


@dataclass(frozen=True, slots=True)
class RecordedClaim:
    """An order of time slicing and priority streams, as the paper has it."""

    text: str
    task: str
    """``inference`` or ``training``."""
    lower: str
    higher: str
    spread: bool = False
    """It is of deviations over means; of those no error is known."""


RECORDED_CLAIMS: Final = (
    RecordedClaim("turnaround shorter in slices than under priority streams", "inference", SLICING, PRIORITY),
    RecordedClaim("training steps longer in slices than under priority streams", "training", PRIORITY, SLICING),
    RecordedClaim(
        "turnaround less predictable under priority streams than in slices", "inference", SLICING, PRIORITY, True
    ),
)


def rises(claim: RecordedClaim, network: str, launcher: str) -> bool | None:
    """Whether it is so in a recording; ``None``: by less than the error of means."""
    rows = shared_rows()
    low, high = (rows[network, launcher, what][f"{claim.task}_us"] for what in (claim.lower, claim.higher))
    if claim.spread:
        return bool(low["std_us"] / low["mean_us"] < high["std_us"] / high["mean_us"])
    difference = high["mean_us"] - low["mean_us"]
    error = math.hypot(*(of["std_us"] / math.sqrt(of["n"]) for of in (low, high)))
    return None if abs(difference) <= ERRORS * error else difference > 0.0


def order_by_lock(judge: Callable[[RecordedClaim, str, str], bool | None] = rises) -> str:
    """For which networks turnarounds have the published order with the interpreter's lock, and for which without it."""
    found = [
        ", ".join(name for network, name in NETWORKS.items() if judge(RECORDED_CLAIMS[0], network, launcher)) or "none"
        for launcher in LAUNCHERS
    ]
    return "turnarounds were in the published order for {} with the interpreter's lock, for {} without it".format(
        *found
    )


def simulated_rises(claim: RecordedClaim, sides: Sequence[SharedSide]) -> dict[tuple[str, str], bool]:
    """Whether it is so in simulation, by network and what launches; empty for deviations, which are not simulated."""
    task = "turnaround" if claim.task == "inference" else claim.task
    of = {(side.network, side.launched, side.mode): side.simulated for side in sides if side.task == task}
    return {
        (network, launched): value < of[network, launched, claim.higher]
        for (network, launched, mode), value in of.items()
        if mode == claim.lower and (network, launched, claim.higher) in of and not claim.spread
    }


def recorded_findings(
    sides: Sequence[SharedSide] = (), judge: Callable[[RecordedClaim, str, str], bool | None] = rises
) -> list[Finding]:
    """Every claim for both launchers: it holds, or not, if it does for all networks; else it is undecided.

    Args:
        sides: what is simulated of the same.
        judge: of a claim, a network and a launcher.
    """
    found = []
    for claim in RECORDED_CLAIMS:
        simulated = simulated_rises(claim, sides)
        for launcher, launched in LAUNCHED.items():
            each = {name: judge(claim, network, launcher) for network, name in NETWORKS.items()}
            ours = {name: simulated[name, launched] for name in each if (name, launched) in simulated}
            agreed = set(each.values())
            holds = agreed.pop() if len(agreed) == 1 else None
            text = f"{claim.text}{BY}{launched}"
            note = f"Simulated: {_told(ours)}" if ours else ""
            count = sum(verdict is True for verdict in each.values())
            found.append(Finding("recorded", text, holds, _told(each), count, len(each), note, holds is None))
    return found


def _told(verdicts: Mapping[str, bool | None]) -> str:
    """Which networks it is so for, and which not."""
    words = {True: "so for", False: "not for", None: "equal for"}
    named = {word: [name for name, found in verdicts.items() if found is of] for of, word in words.items()}
    return "; ".join(f"{word} {', '.join(names)}" for word, names in named.items() if names)
