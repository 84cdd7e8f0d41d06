"""From the actions of a policy to the commands of a scheduler, at both grains: every launch, or for an interval."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import Shown
from gpusched_env.planning.dispatcher import IntervalDispatcher
from gpusched_env.planning.outlook import NOTHING_AHEAD, outlook
from gpusched_env.scenarios.knowledge import Knowledge, StreamKnowledge
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import View


class Acting:
    """What stands between a policy's action and the next."""

    def __init__(self, layout: ActionLayout, wait_us: float, decision_us: float = 0.0) -> None:
        """``wait_us``: longest wait of action 0, where every launch is an action.

        ``decision_us``: how long a decision for an interval takes the host; what is launched goes on meanwhile.
        """
        self._layout, self._wait_us, self._decision_us = layout, wait_us, decision_us
        self.outlook = NOTHING_AHEAD
        self.dispatcher: IntervalDispatcher | None = None
        """Of the present episode; ``None``: every launch is an action."""

    def reset(self, knowledge: Knowledge) -> None:
        """A new episode."""
        self.outlook, self.dispatcher = NOTHING_AHEAD, None
        if self._layout.interval_us > 0.0:
            self.outlook = outlook(knowledge)
            self.dispatcher = IntervalDispatcher(self._layout.interval_us, knowledge.stream_priorities, self.outlook)

    def standing(self, view: View) -> Command | None:
        """The next command by the decision that stands; ``None``: the policy is to be asked."""
        if self.dispatcher is None or self.dispatcher.asks(view):
            return None
        return self.dispatcher.command(view)

    def command(self, action: int, view: View, streams: Sequence[StreamKnowledge], shown: Shown) -> Command:
        """The command that a legal action stands for, or the first one by it; arguments as for ``ActionLayout``."""
        command = self.stand(action, view, streams, shown)
        if command is None:
            assert self.dispatcher is not None, "only then do actions stand"
            return self.dispatcher.command(view)
        return command

    def stand(self, action: int, view: View, streams: Sequence[StreamKnowledge], shown: Shown) -> Command | None:
        """Let a legal action stand, or give the command that it is."""
        serve = self._layout.serve(action)
        if serve is None or self.dispatcher is None:
            return self._layout.decode(action, view, wait_us=self._wait_us, streams=streams, shown=shown)
        self.dispatcher.set(view, serve, self._decision_us)
        return None
