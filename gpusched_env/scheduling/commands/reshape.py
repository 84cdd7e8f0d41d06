"""Giving a kernel another form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.commands.world import any_reshapable
from gpusched_env.scheduling.showing import Shown


@dataclass(frozen=True, slots=True)
class Reshape(AnyCommand):
    """Let a kernel do its work in another form: with other tiles, or another number of slices that share a tile's work.

    cuSync's users choose both when they compile a kernel. Here the compiled forms are there, and one is named before
    the launch. From then on the launch is a kernel of that form: its grid, its blocks, its profile.

    Legal: ``view.pending.forms`` says how many forms it may be given: 0 where its kernel has none, it was launched or
    given one before, or its tiles or its producer's were synchronised for it, or it passes a window.

    Cost: no time of the GPU's host but that of the decision.
    """

    NAME: ClassVar = "reshape"
    VERB: ClassVar = "reshape a kernel"
    NUMBERS: ClassVar = ("launch", "form")
    anywhere: ClassVar = staticmethod(any_reshapable)

    launch: int
    """Launch id: ``view.pending.id``."""
    form: int
    """Place in ``Knowledge.kernels[identity].forms``, from 0."""

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        pending = view.pending
        rows = np.flatnonzero(pending.id == self.launch)
        if not rows.size:
            raise IllegalCommand(f"{self}: launch {self.launch} is not pending")
        count = int(pending.forms[rows[0]])
        if count == 0:
            legal = pending.id[pending.forms > 0.0].astype(int).tolist()
            # Graphs have identities behind those of kernels, and may hold a single node.
            identity = int(pending.identity[rows[0]])
            kernel = problem.kernels[identity] if identity < len(problem.kernels) else None
            why = "it was launched, or given a form, or its tiles were synchronised"
            if kernel is None or not kernel.forms:
                why = "its kernel has no other form"
            raise IllegalCommand(f"{self}: {why}; launches that may be given a form now: {legal[:10]}")
        if not 0 <= self.form < count:
            raise IllegalCommand(f"{self}: forms of launch {self.launch} are 0..{count - 1}")
