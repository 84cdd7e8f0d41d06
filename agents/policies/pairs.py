"""The rule of pairs: a linear function that says how, and whether, the tiles of two kernels are synchronised.

For each policy, order and wait kernel of a pair that can be synchronised: the share of the time in stream order that a
list schedule of the blocks saves with free synchronisation, in per cent, plus ``policy . terms`` with the weights of
the policy, ``order . terms`` with those of the order (none for the native one), and with a wait kernel
``wait . terms``, plus 1 if the producer will start late and minus 1 if not. The greatest value is taken, of equal ones
the first; if it is at most 0, the pair stays in stream order.

Before that each kernel that has other forms may be given one: for each of them the share that a list schedule saves
(``FORM1_GAIN`` and so on), in per cent, plus ``form . terms``. The greatest value is taken if it is above 0.

What can be launched is launched, the oldest first; while a more urgent tenant has a job, at ``1 + release . terms``,
and at most 0 means that it is held back. Where kernels can be preempted it is ``-1 + release . terms``, and what runs
is preempted while that is so, in the first way that the scenario offers, if ``1 + preempt . terms`` is above 0.

With all weights 0 that is the prediction of the scheduler ``cusync-predicted``, as if synchronising cost nothing, and
the GPU is cleared for more urgent tenants as by ``gpreempt``. The weights say what each costs, and what else is saved.
Terms are in per cent, too: a weight of 1 of ``LAUNCHES`` is 10 microseconds that are saved for each pair. A counter's
order without any other change (``row-major``) is never taken. :mod:`gpusched_env.agents.pairs` computes the terms from
an observation.
"""

from __future__ import annotations

import enum


class PolicyRow(enum.IntEnum):
    """Rows of ``policy``, in the order of the actions."""

    ROW = 0
    TILE = enum.auto()
    STRIDED = enum.auto()
    MATRIX = enum.auto()


class PolicyTerm(enum.IntEnum):
    """Columns of ``policy``."""

    ONE = 0
    LAUNCHES = enum.auto()
    """10 us, of the time of both kernels: what the consumer need not wait for its launch."""
    BLOCKS = enum.auto()
    """A microsecond, of the time of a block of the consumer: what a post, or one wait, takes of it."""
    WAITS = enum.auto()
    """The same, times how often a block waits by tile."""
    ACTIVE = enum.auto()
    """1 if a more urgent tenant has a job in the system."""
    LATE = enum.auto()
    """1 if the producer will not start as soon as it is launched."""


class OrderRow(enum.IntEnum):
    """Rows of ``order``."""

    GROUPED = 0
    COLUMN_MAJOR = enum.auto()


class OrderTerm(enum.IntEnum):
    """Columns of ``order``."""

    ONE = 0
    BLOCKS = enum.auto()
    """As of policies."""


class WaitTerm(enum.IntEnum):
    """Columns of ``wait``: of a wait kernel."""

    ONE = 0
    LAUNCHES = enum.auto()
    ACTIVE = enum.auto()
    """As of policies."""


class ReleaseTerm(enum.IntEnum):
    """Columns of ``release``: of a launch while a more urgent tenant has a job in the system; otherwise all are 0."""

    ONE = 0
    CONSUMER = enum.auto()
    """1 if its tiles are synchronised with its producer's."""
    DURATION = enum.auto()
    """Profiled, as 4 ln(1 + us) / ln(1 + 10^6)."""


class PreemptTerm(enum.IntEnum):
    """Columns of ``preempt``: of a kernel that has started, while a more urgent tenant has a job in the system."""

    ONE = 0
    CONSUMER = enum.auto()
    """1 if it waits for tiles."""
    LEFT = enum.auto()
    """Profiled time left, as DURATION of ``release``."""


class FormTerm(enum.IntEnum):
    """Columns of ``form``."""

    ONE = 0
    BLOCK = enum.auto()
    """10 times the natural logarithm of how many times as long a block takes as it does now."""
    DURATION = enum.auto()
    """Per cent that the kernel takes longer alone."""
    SLICES = enum.auto()
    """How many times as many slices share a tile, as a logarithm likewise."""
    ACTIVE = enum.auto()
    """1 if a more urgent tenant has a job in the system."""
    ACTIVE_BLOCK = enum.auto()
    """BLOCK while that is so, else 0."""
    ACTIVE_DURATION = enum.auto()
    """DURATION while that is so, else 0."""


READS: dict[str, tuple[str, ...]] = {
    "pending": (
        "LAUNCHABLE", "PROFILED", "WAVES", "MORE_URGENT_ACTIVE", "SYNCHRONISABLE", "POLICY",
        "PRODUCER_PROFILED", "WAITS", "LATE",
        "GAIN_ROW", "GAIN_TILE", "GAIN_STRIDED", "GAIN_MATRIX",
        "GAIN_ROW_GROUPED", "GAIN_TILE_GROUPED", "GAIN_STRIDED_GROUPED", "GAIN_MATRIX_GROUPED",
        "GAIN_ROW_COLUMNS", "GAIN_TILE_COLUMNS", "GAIN_STRIDED_COLUMNS", "GAIN_MATRIX_COLUMNS",
        "SLICES",
        "FORM1_PROFILED", "FORM1_WAVES", "FORM1_SLICES", "FORM1_GAIN",
        "FORM2_PROFILED", "FORM2_WAVES", "FORM2_SLICES", "FORM2_GAIN",
        "FORM3_PROFILED", "FORM3_WAVES", "FORM3_SLICES", "FORM3_GAIN",
    ),
    "running": ("PRESENT", "URGENCY", "STARTED", "PREEMPTING", "LEFT", "POLICY"),
    "tenants": ("URGENCY", "JOBS"),
}  # fmt: skip
"""Columns of an observation that the rule reads, by name: others may come and go."""

SHAPES: dict[str, tuple[int, ...]] = {
    "policy": (len(PolicyRow), len(PolicyTerm)),
    "order": (len(OrderRow), len(OrderTerm)),
    "wait": (len(WaitTerm),),
    "release": (len(ReleaseTerm),),
    "form": (len(FormTerm),),
    "preempt": (len(PreemptTerm),),
}
"""Weights by name."""
