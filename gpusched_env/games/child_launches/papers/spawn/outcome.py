"""What came out of the reproduction, what did not, and why: the first sentences of its page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpusched_env.games.child_launches.papers.spawn.runs import BARS
from gpusched_env.games.child_launches.papers.spawn.scores import CLOSE, bar_errors

if TYPE_CHECKING:
    from gpusched_env.games.child_launches.papers.spawn.figures import Figures


def outcome(figures: Figures) -> str:
    """Three paragraphs."""
    held = [score.figure for score in figures.scores if score.comes_out]
    missed = Counter(score.source for score in figures.scores if not score.comes_out)
    off = ", ".join(f"{count} of {source}" for source, count in missed.items())
    errors = bar_errors(figures.bars(""), figures.theirs)
    close = ", ".join(f"{(errors[bar].abs() <= CLOSE).sum()} for {BARS[bar]}" for bar in BARS)
    worst = errors.abs().stack().nlargest(3)
    most = ", ".join(f"{BARS[bar]} of {name} {errors.loc[name, bar]:+.0%}" for name, bar in worst.index)
    return (
        f"Came out: {len(held)} of the {len(figures.scores)} figures [that are judged](#what-is-judged): "
        f"{'; '.join(held) or 'nothing'}.\n\nDid not: {off or 'nothing'}.\n\n"
        f"Why: errors of bars have both signs and cancel in geometric means. Of {len(errors)} bars only {close} are "
        f"within {CLOSE:.0%}. Furthest off are {most}. How lanes map to work and how meshes refine is not published. "
        f"Children that share queues hardly cost anything here, and the size of their blocks hardly matters."
    )
