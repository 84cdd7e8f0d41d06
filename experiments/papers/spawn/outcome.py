"""What came out of the reproduction, what did not, and why: the first sentences of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.experiments.papers.spawn.runs import BARS
from gpusched_env.experiments.papers.spawn.scores import CLOSE, bar_errors

if TYPE_CHECKING:
    from gpusched_env.experiments.papers.spawn.figures import Figures


def outcome(figures: Figures) -> str:
    """Three paragraphs."""
    texts = {
        holds: "; ".join(
            f"{score.figure} ({score.source}: {score.ours:{score.form}}"
            + (f", published {score.published:{score.form}})" if score.published is not None else ")")
            for score in figures.scores
            if score.comes_out is holds
        )
        for holds in (True, False)
    }
    errors = bar_errors(figures.bars(""), figures.theirs)
    close = ", ".join(f"{(errors[bar].abs() <= CLOSE).sum()} for {BARS[bar]}" for bar in BARS)
    worst = errors.abs().stack().nlargest(3)
    most = ", ".join(f"{BARS[bar]} of {name} {errors.loc[name, bar]:+.0%}" for name, bar in worst.index)
    return (
        f"Came out: {texts[True] or 'nothing'}.\n\nDid not: {texts[False] or 'nothing'}.\n\n"
        f"The reason: errors of bars have both signs and cancel in geometric "
        f"means, while of {len(errors)} bars only {close} are within {CLOSE:.0%} "
        f"(furthest off: {most}); how lanes map to work and how meshes refine is not published, children that share "
        f"queues hardly cost anything here, and the size of their blocks hardly matters."
    )
