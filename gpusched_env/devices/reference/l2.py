"""What tenants have in the L2, kernel by kernel (:mod:`gpusched_env.hardware.l2`)."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.hardware.l2 import missing
from gpusched_env.scenarios.problem import Problem


@dataclass
class Share:
    """One tenant's."""

    job: int = -1
    """The last one of which a kernel has become resident."""
    brought_bytes: float = 0.0
    """By its kernels, since the episode began."""
    seen_bytes: float = 0.0
    """What others had brought when that job's first kernel became resident."""
    missing: float = 1.0
    """What that job does not find any more."""


class L2:
    """The L2 of a problem's GPU; it changes nothing where no kernel's time depends on it."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._on = problem.l2_matters
        self._shares = [Share() for _ in problem.programs]
        self._brought_bytes = 0.0

    def stretch(self, launch: Launch) -> float:
        """How much longer a kernel takes that becomes resident now than in a warm L2, as a factor.

        All kernels of a job find what was left when its first one became resident: whoever ran meanwhile ran between
        the two touches of each of them.
        """
        if not self._on:
            return 1.0
        share, program = self._shares[launch.tenant], self._problem.programs[launch.tenant]
        if launch.job.number > share.job:
            others = self._brought_bytes - share.brought_bytes
            share.missing = 1.0
            if share.job >= 0:
                since = others - share.seen_bytes
                share.missing = missing(self._problem.gpu.l2_bytes, program.footprint_bytes, since)
            share.seen_bytes, share.job = others, launch.job.number
        return 1.0 + launch.op.cold * share.missing

    def bring(self, launch: Launch) -> None:
        """A kernel has ended: what it read and wrote has passed the L2."""
        if not self._on:
            return
        share, program = self._shares[launch.tenant], self._problem.programs[launch.tenant]
        brought = self._problem.kernels[launch.op.identity].brought_bytes * launch.op.scale * program.brings
        if program.keeps:
            brought *= share.missing
        self._brought_bytes += brought
        share.brought_bytes += brought
