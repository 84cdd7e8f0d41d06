"""What came out of a validation, what did not, and why: the first sentences of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.experiments.validate.tables import NAMES, limited

if TYPE_CHECKING:
    from gpusched_env.experiments.validate.results import Limited, Validation


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
    """How far noise goes."""
    if not validation.scores:
        return ""
    within = ", ".join(f"{of['within_noise']:.0%} of {name}" for name, of in validation.scores.items())
    return (
        "Why kernels are off: which block finishes first decides what runs next, and repetitions differ too. Within "
        f"the noise of their repetitions are {within}."
    )
