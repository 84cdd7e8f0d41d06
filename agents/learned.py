"""A trained policy as a scheduler, and the way from its actions to commands: every launch, or for an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpusched_env.agents.exported import ExportedPolicy, Slots, Workspace
from gpusched_env.agents.shipped import shipped_policy
from gpusched_env.compiling import notice_compilation
from gpusched_env.devices.compiled.memory import Kept
from gpusched_env.envs.action_fields import LEAST_INTERVAL_US
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch_state import ObservationTables
from gpusched_env.envs.features import Scalar
from gpusched_env.envs.numbering import slice_layout_of
from gpusched_env.envs.observations import ShownLaunches
from gpusched_env.errors import InputError
from gpusched_env.planning.dispatcher import IntervalDispatcher
from gpusched_env.planning.lookahead import plan_ahead
from gpusched_env.planning.outlook import NOTHING_AHEAD, outlook
from gpusched_env.planning.plans import plan_view
from gpusched_env.planning.tiles import SCRATCH
from gpusched_env.scenarios.knowledge import Knowledge, Offer, StreamKnowledge
from gpusched_env.scenarios.scenario import CommandName
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.reads import OBSERVED, Reads
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, View


class Acting:
    """What stands between a policy's action and the next."""

    def __init__(self, layout: ActionLayout, wait_us: float, decision_us: float = 0.0) -> None:
        """``wait_us``: longest wait of action 0, where every launch is an action.

        ``decision_us``: how long a decision for an interval takes the host; what is launched goes on meanwhile.
        """
        self._layout, self._wait_us, self._decision_us = layout, wait_us, decision_us
        self.outlook = NOTHING_AHEAD
        self.dispatcher: IntervalDispatcher | None = None
        """Dispatcher of the present episode; ``None``: every launch is an action."""

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

    def command(self, action: int, view: View, streams: Sequence[StreamKnowledge], shown: ShownLaunches) -> Command:
        """The command that a legal action stands for, or the first one by it; arguments as for ``ActionLayout``."""
        command = self.stand(action, view, streams, shown)
        if command is None:
            assert self.dispatcher is not None, "only then do actions stand"
            return self.dispatcher.command(view)
        return command

    def stand(
        self, action: int, view: View, streams: Sequence[StreamKnowledge], shown: ShownLaunches
    ) -> Command | None:
        """Let a legal action stand, or give the command that it is."""
        serve = self._layout.serve(action)
        if serve is None or self.dispatcher is None:
            return self._layout.decode(action, view, wait_us=self._wait_us, streams=streams, shown=shown)
        self.dispatcher.set(view, serve, self._decision_us)
        return None


class LearnedScheduler:
    """A trained policy, from the file that export_policy wrote; decides as it does in the environment."""

    reads: Reads = OBSERVED

    def __init__(
        self,
        policy: str | Path | ExportedPolicy | None = None,
        *,
        interval_us: float | None = None,
        decision_us: float = 0.0,
    ) -> None:
        """Play a trained policy.

        Args:
            policy: a file's path, a policy, or ``None``: what is shipped for the scenario of each episode.
            interval_us: how long its decisions stand, at least 1, where it decides for an interval; ``None``: as in its
                training. In slow motion (``stretch`` of a scenario), as many times as long keeps the number of
                decisions that a job gets.
            decision_us: host time that each decision for an interval takes, 0 or more; the decision before it stands
                meanwhile. Where every launch is a decision, ``decision_us`` of the scenario says so for all schedulers.

        Raises:
            InputError: the file cannot be read, or was made for other observations; ``decision_us`` is not a number
                of at least 0, or ``interval_us`` none of at least 1.
        """
        if interval_us is not None and not LEAST_INTERVAL_US <= interval_us < math.inf:
            raise InputError(
                f"interval_us is {interval_us!r}, must be a finite number of at least {LEAST_INTERVAL_US:g}"
            )
        if not 0.0 <= decision_us < math.inf:
            raise InputError(f"decision_us is {decision_us!r}, must be a finite number of at least 0")
        self._interval_us, self._decision_us = interval_us, decision_us
        self._given = policy if policy is None or isinstance(policy, ExportedPolicy) else ExportedPolicy.load(policy)
        self.set_up = SetUp(uses=self._uses)
        self._workspace: _Workspace | None = None

    def describe(self) -> str:
        """One line about the policy."""
        if self._given is None:
            return "The trained agent that is shipped for the scenario."
        return f"Trained agent: {self._given.info.summary()}."

    def prepare(self, scenario: Offer) -> None:
        """Compile what is needed for ``scenario``, once after an installation.

        Raises:
            InputError: the policy does not fit, or none is shipped for the scenario; it decides about every launch,
                and was given an interval.
        """
        policy, layout = self._for(scenario)
        before = self._workspace
        if before is None or before.policy is not policy or before.layout != layout:
            self._workspace = _Workspace(policy, layout, self._decision_us)

    def _uses(self, scenario: Offer) -> tuple[CommandName, ...]:
        """Commands of ``scenario`` that the policy has actions for; no other one asks it for a decision.

        Raises:
            InputError: as :meth:`prepare`.
        """
        return self._for(scenario)[1].uses(scenario.commands)

    def _for(self, scenario: Offer) -> tuple[ExportedPolicy, ActionLayout]:
        """The policy and its actions in ``scenario``.

        Raises:
            InputError: as :meth:`prepare`.
        """
        policy = self._given if self._given is not None else shipped_policy(scenario)
        layout = policy.layout_for(scenario)
        if self._interval_us is None:
            return policy, layout
        if layout.interval_us == 0.0:
            raise InputError(
                f"the policy, trained on {policy.info.scenario}, decides about every launch; interval_us is for those "
                "that decide for an interval"
            )
        return policy, replace(layout, interval_us=self._interval_us)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        self.prepare(knowledge)
        self._streams = knowledge.streams
        assert self._workspace is not None, "prepared"
        self._workspace.reset(knowledge)

    def decide(self, view: View) -> Command:
        return self._known().decide(view, self._streams)

    @property
    def dispatcher(self) -> IntervalDispatcher | None:
        """What launches between two decisions of the present episode; ``None``: every launch is a decision."""
        return self._known().acting.dispatcher

    def stand(self, view: View) -> Command | None:
        """Decide for an interval, or give a command to be carried out before that."""
        return self._known().stand(view, self._streams)

    def _known(self) -> _Workspace:
        if self._workspace is None:
            raise InputError("the scheduler knows of no episode yet: call reset(knowledge, rng) first")
        return self._workspace


class _Workspace:
    """A policy and the arrays that it works in, for problems with the same actions."""

    def __init__(self, policy: ExportedPolicy, layout: ActionLayout, decision_us: float) -> None:
        with notice_compilation("policies"):
            from gpusched_env.agents.exported import act_on_view, put_workspace

        self.policy = policy
        self.layout = layout
        self._act_on_view = act_on_view
        self.acting = Acting(layout, policy.info.wait_us, decision_us)
        laid = slice_layout_of(layout)
        self._no_plan = np.zeros((0, 0))
        self._shown = ShownLaunches(
            np.zeros((layout.pending_slots, len(PendingColumn))), np.zeros((layout.running_slots, len(RunningColumn)))
        )
        seen = np.zeros(layout.slots, np.bool_)
        tiles = np.zeros(SCRATCH if layout.predicts else (0, 0))
        workspace = Workspace(
            policy.actor(layout.pending_slots),
            Slots(layout.lookahead, laid.rows, laid.choices, self._shown.pending, self._shown.running, seen, tiles),
            np.zeros(len(Scalar)),
            ObservationTables.zeros(layout),
            np.zeros(layout.n, np.bool_),
            np.zeros(layout.n, np.float32),
        )
        self._scalars = workspace.scalars
        self._kept = Kept(workspace, put_workspace)

    def reset(self, knowledge: Knowledge) -> None:
        self.acting.reset(knowledge)

    def decide(self, view: View, streams: Sequence[StreamKnowledge]) -> Command:
        standing = self.acting.standing(view)
        if standing is not None:
            return standing
        return self.acting.command(self._action(view), view, streams, self._shown)

    def stand(self, view: View, streams: Sequence[StreamKnowledge]) -> Command | None:
        return self.acting.stand(self._action(view), view, streams, self._shown)

    def _action(self, view: View) -> int:
        if self.layout.interval_us == 0.0:
            plan = self._no_plan
        else:
            outlook = self.acting.outlook
            plan = plan_ahead(view, outlook) if self.layout.futures else plan_view(view, outlook)
        self._scalars[:] = (view.time_us, view.horizon_us, view.sms, view.busy_sms, view.occupancy, view.dram)
        address = self._kept.address
        return int(self._act_on_view(address, view.pending.array, view.running.array, view.tenants.array, plan))
