"""The rule: a few linear functions that say which pending kernel to launch, on how much of the GPU, how urgently.

A *situation* is how things stand between a tenant and those more urgent than it. Tenants of the most urgent class are
always launched, on the whole GPU. For any other tenant with a launchable kernel, with the weights of its situation:

1. *Launch.* ``1 + launch . terms``: at most 0 means that the kernel is held back. Of those to launch, the most urgent
   tenant's comes first, within a class the one with the greatest value, and of equals of a tenant the oldest.
2. *Share.* ``4.4 + share . terms``, rounded, 1 to 4: the quarters of the GPU's SMs that the kernel may use. The
   tenant's partition is set first if it is another (and can be set), where the scenario offers partitions.
3. *Level.* What its priority class stands for (the most urgent: the last of the scenario's stream priorities)
   ``+ level . terms``, rounded: which of them it is launched with. While a kernel of the tenant is launched and
   unfinished, the next ones go where that one went: a kernel at another stream priority is in another stream, and
   waits for an event of the one before, which costs more than the right order gains.

With all weights 0, every kernel is launched at once, on the whole GPU, at the stream priority of its class. So the
weights say how to depart from that; there are few enough to read, and to search without gradients (CMA-ES). Policies
that are linear in a few terms, found by search, have held their own against networks in control: H. Mania, A. Guy and
B. Recht, *Simple random search of static linear policies is competitive for reinforcement learning* (NeurIPS 2018).

Terms are near -2 to 2. A duration of ``t`` us counts as ``4 ln(1 + t) / ln(1 + 10^6)``: 0.7 for 10 us, 2 for 1 ms.
:mod:`gpusched_env.agents.rule` computes them from an observation.
"""

from __future__ import annotations

import enum


class Situation(enum.IntEnum):
    """How a tenant stands to more urgent ones: rows of ``launch`` and ``share``."""

    RUNNING = 0
    """One of them has launched, unfinished kernels."""
    ACTIVE = enum.auto()
    """One of them has a job in the system, none a launched kernel: between its kernels, or about to begin."""
    IDLE = enum.auto()
    """None of them has a job."""


class LaunchTerm(enum.IntEnum):
    """Columns of ``launch``."""

    ONE = 0
    DURATION = enum.auto()
    """Profiled duration of the kernel, minus 1."""
    FELLOWS = enum.auto()
    """Launched, unfinished kernels of tenants that are not more urgent, its own included: at most 8, over 2."""
    FELLOWS_LEFT = enum.auto()
    """Predicted time left of those, summed."""
    BLOCK_DURATION = enum.auto()
    """Profiled duration over the waves of blocks: for how long a block holds its SM; minus 1."""
    SMS = enum.auto()
    """SMs that it would use on the empty GPU, of all."""
    DRAM = enum.auto()
    """Profiled share of DRAM bandwidth."""
    SUFFERED = enum.auto()
    """What more urgent tenants suffered lately: ``5 ln`` of the greatest of their mean slowdowns, 0 to 2."""


class ShareTerm(enum.IntEnum):
    """Columns of ``share``; terms as in :class:`LaunchTerm`."""

    ONE = 0
    DURATION = enum.auto()
    BLOCK_DURATION = enum.auto()
    SMS = enum.auto()
    DRAM = enum.auto()
    SUFFERED = enum.auto()


class LevelTerm(enum.IntEnum):
    """Entries of ``level``."""

    DURATION = 0
    BLOCK_DURATION = enum.auto()
    VALUE = enum.auto()
    """``ln`` of what a delay of one of the tenant's jobs costs: its weight over its turnaround alone in ms."""
    JOBS = enum.auto()
    """``ln`` of the tenant's jobs in the system, which a delay of the first one delays, too."""
    JOB_LEFT = enum.auto()
    """``ln`` of the profiled device time left of the job, in ms, at least 0.001."""
    SLOWDOWN = enum.auto()
    """Slowdown that the job has coming, as ``2 x / (1 + x)``, minus 1."""
    SLACK = enum.auto()
    """``pending.SLACK`` of the observation."""


READS: dict[str, tuple[str, ...]] = {
    "pending": (
        "LAUNCHABLE", "URGENCY", "PROFILED", "WAVES", "SMS", "DRAM", "JOB_SLOWDOWN", "JOB_LEFT", "SLACK",
        "MORE_URGENT_LAUNCHED", "MORE_URGENT_ACTIVE",
    ),
    "running": ("TENANT", "STREAM_URGENCY"),
    "tenants": (
        "PRESENT", "URGENCY", "WEIGHT", "ALONE", "JOBS", "LAUNCHED", "LAUNCHED_LEFT", "MEAN_SLOWDOWN", "PARTITION_SMS",
    ),
}  # fmt: skip
"""Columns of an observation that the rule reads, by name: others may come and go."""

SHAPES: dict[str, tuple[int, ...]] = {
    "launch": (len(Situation), len(LaunchTerm)),
    "share": (len(Situation), len(ShareTerm)),
    "level": (len(LevelTerm),),
}
"""Weights by name."""
