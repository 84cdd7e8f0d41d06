"""What came out of the reproduction, what did not, and why: the first sentences of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.experiments.papers.fikit.modes import MPS, PROCESSES
from gpusched_env.experiments.papers.fikit.pairs import MOST_ABOVE, SPEEDUP, distribution

if TYPE_CHECKING:
    from gpusched_env.experiments.papers.fikit.figures import Figures


def outcome(figures: Figures) -> str:
    """Three paragraphs, of all pairs. A claim is shown in a setting if all its controls fail there."""
    verdicts: dict[str, dict[tuple[str, str, int], set[str]]] = {}
    for each in figures.claimed:
        settings = verdicts.setdefault(each.claim.partition(",")[0], {})
        settings.setdefault((each.claim, each.setting, each.services), set()).add(each.verdict)
    counted: dict[str, list[str]] = {"shown": [], "not shown": [], "off": []}
    for claim, settings in verdicts.items():
        found = [min(of, key=["off", "not shown", "shown"].index) for of in settings.values()]
        for verdict, texts in counted.items():
            if verdict in found:
                texts.append(f"{claim} ({found.count(verdict)} of {len(found)} settings)")
    return (
        f"Came out, and fails without its mechanism: {_listed(counted['shown'])}.\n\n"
        f"Did not: {_listed(counted['off'])}; "
        f"came out without the mechanism as well: {_listed(counted['not shown'])}.\n\n{_why(figures)}"
    )


def _why(figures: Figures) -> str:
    found = {lows: distribution(of) for (setting, lows), of in figures.by_co_runners.items() if setting == PROCESSES}
    medians = ", ".join(f"{of['median']:.2f} with {lows}" for lows, of in found.items())
    last = max(found)
    low, high = (figures.speedups(setting, 1)[f"low_share: {setting.fikit}"].mean() for setting in (PROCESSES, MPS))
    return (
        f"Why: N services beside one are N + 1 contexts that share time slices. That alone gives a median speed-up "
        f"near N + 1 ({medians}). So the {found[last]['above']:.0%} above {MOST_ABOVE} with {last} services say how "
        f"many share the GPU, and nothing of gap filling. Filling takes up {low:.1%} of the time there, and {high:.1%} "
        f"with a threshold below the gaps. The {found[last]['beyond']:.0%} of pairs beyond {SPEEDUP[1]} are networks "
        f"that wait for the GPU hundreds of times a request."
    )


def _listed(texts: list[str]) -> str:
    return "; ".join(texts) or "nothing"
