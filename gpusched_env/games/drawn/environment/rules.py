"""Rules that an agent chooses among, and how one of them decides for an interval.

Each choice is a scheduler by its published rule: who makes one choice all the time does what that scheduler does.
"""

from __future__ import annotations

from typing import Final

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.episodes.session import begin
from gpusched_env.errors import IllegalCommand
from gpusched_env.planning.plans import NOBODY
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp, problem_for, set_up, set_up_of
from gpusched_env.scheduling.commands import WAIT, Command, SetPartition, Wait
from gpusched_env.scheduling.contract import Device, Scheduler
from gpusched_env.scheduling.view import View

RULES: Final = (
    "priority-streams", "wspt", "edf", "sjf", "clockwork", "triage", "moore", "plan(interference=true)", "orion",
    "reef", "gpreempt", "tally", "xsched", "conservative", "exclusive", "gpucolo", "gpucolo(first_share=40)",
)  # fmt: skip
"""They run in one set-up: all tenants in one context, in their own streams, with whatever commands they ask for. The
last two confine best effort to a share of the SMs: their controllers act every 4 s, longer than an episode."""


def common_problem(problem: Problem) -> Problem:
    """The problem with the commands of all rules on offer: each brings its own, as its authors have it."""
    commands = {command for rule in RULES for command in set_up_of(make_scheduler(rule)).commands}
    return set_up(problem, SetUp(commands=tuple(sorted(commands))))


class Rules:
    """The rules in one episode, each of which has seen what it decided itself."""

    def __init__(self, problem: Problem, seed: int) -> None:
        """``problem``: as the scenario has it; ``seed``: of the episode."""
        self._problem, self._seed = problem, seed
        self._begun: dict[int, Scheduler] = {}
        self._last = NOBODY
        self.refused = 0
        """Commands that a rule gave for what another one had left, and that were not legal."""

    def play(self, rule: int, view: View, device: Device, until_us: float) -> View | None:
        """Let a rule decide until a time; returns the view then, or ``None`` at the end of the episode."""
        now: View | None = view
        if self._last not in (NOBODY, rule):
            now = self._set_free(view, device)
        self._last = rule
        scheduler = self._known(rule)
        while now is not None and now.time_us < until_us:
            self._carry_out(scheduler, now, device, until_us)
            now = device.advance()
        return now

    def _set_free(self, view: View, device: Device) -> View | None:
        """Confine nobody any more; whoever has confined begins anew when it decides again."""
        now: View | None = view
        for row in range(len(view.tenants)):
            if now is None:
                break
            tenants = now.tenants
            if tenants.partition_sms[row] < now.sms and tenants.partitionable[row]:
                device.apply(SetPartition(row, None))
                now = device.advance()
                self._begun.pop(self._last, None)
        return now

    def _carry_out(self, scheduler: Scheduler, view: View, device: Device, until_us: float) -> None:
        command = scheduler.decide(view)
        try:
            device.apply(_at_most(command, until_us))
        except IllegalCommand:
            self.refused += 1
            device.apply(_at_most(WAIT, until_us))

    def _known(self, rule: int) -> Scheduler:
        if rule not in self._begun:
            scheduler = self._begun[rule] = make_scheduler(RULES[rule])
            begin(scheduler, problem_for(scheduler, self._problem), self._seed)
        return self._begun[rule]


def _at_most(command: Command, until_us: float) -> Command:
    """A wait ends where the next decision is due."""
    return Wait(min(command.until_us, until_us)) if isinstance(command, Wait) else command
