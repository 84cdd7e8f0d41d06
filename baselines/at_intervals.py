"""A rule that is asked who goes first every so often, and a dispatcher that launches in between.

So trained agents at this grain are asked, too; and compiled code can launch between two decisions on a real GPU, where
Python takes longer for a launch than most kernels run. Which launches go beside the first tenant's, at what priority,
and which jobs are rejected is the dispatcher's to say (:mod:`gpusched_env.planning.interval`), whatever the rule does
itself.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from gpusched_env.baselines.registered import parse_spec
from gpusched_env.errors import InputError
from gpusched_env.planning.dispatcher import DISPATCHED, HasFirst, IntervalDispatcher, serve_first
from gpusched_env.planning.outlook import outlook
from gpusched_env.scenarios.knowledge import Knowledge, Offer
from gpusched_env.scenarios.scenario import CommandName
from gpusched_env.scenarios.set_up import set_up_of
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.reads import OBSERVED, Reads
from gpusched_env.scheduling.view import View

PREFIX: Final = "interval:"
"""Beginning of the scheduler's name, before the rule: ``interval:moore(price=1.2,interval_us=500)``."""
INTERVAL_US: Final = 250.0
LEAST_US: Final = 1.0


class AtIntervals:
    """A rule that says who goes first, every so often."""

    reads: Reads = OBSERVED

    def __init__(self, rule: Scheduler, interval_us: float = INTERVAL_US) -> None:
        """
        Args:
            rule: it ranks jobs (:class:`~gpusched_env.planning.dispatcher.HasFirst`), as edf, llf, srpt, wspt, triage,
                moore and plan do.
            interval_us: how long a decision stands, at least 1.

        Raises:
            InputError: the rule does not say who goes first, or the interval is out of range.
        """
        if not isinstance(rule, HasFirst):
            raise InputError(
                f"{PREFIX} {type(rule).__name__} does not say which tenant goes first; "
                "edf, llf, srpt, wspt, triage, moore and plan do"
            )
        if not LEAST_US <= interval_us < math.inf:
            raise InputError(
                f"{PREFIX} interval_us is {interval_us!r}, must be a finite number of at least {LEAST_US:g}"
            )
        self._rule, self._first, self._interval_us = rule, rule.first, interval_us
        self.set_up = replace(set_up_of(rule), uses=dispatcher_commands)
        self.dispatcher: IntervalDispatcher | None = None

    def describe(self) -> str:
        """One line about the scheduler."""
        return f"{type(self._rule).__name__} says every {self._interval_us:g} us who goes first; a dispatcher launches."

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode."""
        self._rule.reset(knowledge, rng)
        self.dispatcher = IntervalDispatcher(self._interval_us, knowledge.stream_priorities, outlook(knowledge))

    def decide(self, view: View) -> Command:
        """The next command by the decision that stands."""
        dispatcher = self._known()
        if dispatcher.asks(view):
            self.stand(view)
        return dispatcher.command(view)

    def stand(self, view: View) -> None:
        """Ask the rule who goes first."""
        dispatcher = self._known()
        # It looks around when it decides.
        self._rule.decide(view)
        dispatcher.set(view, serve_first(self._first(view), view, dispatcher.outlook))

    def _known(self) -> IntervalDispatcher:
        if self.dispatcher is None:
            raise InputError("the scheduler knows of no episode yet: call reset(knowledge, rng) first")
        return self.dispatcher


def dispatcher_commands(offer: Offer) -> tuple[CommandName, ...]:
    """What the dispatcher may do of what a scenario offers."""
    return tuple(name for name in offer.commands if name in DISPATCHED)


def rule_and_interval(source: str) -> tuple[str, float]:
    """The rule that a name with :data:`PREFIX` stands for, with its own options, and the interval.

    Raises:
        InputError: the interval is no number.
    """
    name, options = parse_spec(source.removeprefix(PREFIX))
    given = options.pop("interval_us", str(INTERVAL_US))
    try:
        interval_us = float(given)
    except ValueError:
        raise InputError(f"scheduler {source!r}: interval_us is {given!r}, must be a number") from None
    inside = ",".join(f"{option}={value}" for option, value in options.items())
    return f"{name}({inside})" if inside else name, interval_us
