"""Rules that an agent chooses among, and how one of them decides for an interval.

Each choice is a scheduler by its published rule: who makes one choice all the time does what that scheduler does.
"""

from __future__ import annotations

import copy
import math
from typing import Final

import numpy as np

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.planning.plans import NOBODY
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import CommandName
from gpusched_env.scenarios.set_up import SetUp, set_up_of
from gpusched_env.scheduling.commands import Command, SetPartition, Wait
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.view import View

RULES: Final = (
    "priority-streams", "wspt", "edf", "sjf", "clockwork", "triage", "moore", "plan(interference=true)", "orion",
    "reef", "gpreempt", "tally", "xsched", "conservative", "exclusive", "gpucolo", "gpucolo(first_share=40)",
)  # fmt: skip
"""They run in one set-up: all tenants in one context, in their own streams, with whatever commands they ask for. The
last two confine best effort to a share of the SMs: their controllers act every 4 s, longer than an episode."""


def _commands() -> tuple[CommandName, ...]:
    """What all rules decide besides what a scenario offers."""
    return tuple(sorted({command for rule in RULES for command in set_up_of(make_scheduler(rule)).commands}))


class ChosenRule:
    """A scheduler that does what the rule does which is chosen at present.

    Each rule knows what it has seen while it was chosen, and nothing else of the episode.
    """

    set_up = SetUp(commands=_commands())

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode, in which no rule is chosen yet."""
        self._knowledge, self._rng = knowledge, rng
        self._begun: dict[int, Scheduler] = {}
        self._rule = NOBODY
        self._left = NOBODY
        """The rule before, while some are confined as it left them."""
        self.until_us = -math.inf
        """When the next choice is due; nothing is waited for beyond that."""

    def choose(self, rule: int, until_us: float) -> None:
        """Let a rule decide until a time; ``rule``: its row in :data:`RULES`."""
        if self._rule not in (NOBODY, rule):
            self._left = self._rule
        self._rule, self.until_us = rule, until_us

    def decide(self, view: View) -> Command:
        """The rule's command; before its first, those that free whom another rule confined."""
        if self._left != NOBODY:
            free = self._set_free(view)
            if free is not None:
                return free
            self._left = NOBODY
        command = self._known(self._rule).decide(view)
        return Wait(min(command.until_us, self.until_us)) if isinstance(command, Wait) else command

    def _set_free(self, view: View) -> Command | None:
        """Confine somebody no more; the rule that did begins anew when it decides again."""
        tenants = view.tenants
        for row in range(len(tenants)):
            if tenants.partition_sms[row] < view.sms and tenants.partitionable[row]:
                self._begun.pop(self._left, None)
                return SetPartition(row, None)
        return None

    def _known(self, rule: int) -> Scheduler:
        if rule not in self._begun:
            scheduler = self._begun[rule] = make_scheduler(RULES[rule])
            scheduler.reset(copy.deepcopy(self._knowledge), copy.deepcopy(self._rng))
        return self._begun[rule]
