"""A trained policy as a scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpusched_env.agents.acting import Acting
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.shipped import shipped_policy
from gpusched_env.devices.compiled.jit import notice_compilation
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.features import TABLES, Scalar
from gpusched_env.envs.numbering import plan_of
from gpusched_env.envs.observations import Shown
from gpusched_env.errors import InputError
from gpusched_env.planning.lookahead import plan_ahead
from gpusched_env.scenarios.knowledge import Knowledge, Offer, StreamKnowledge
from gpusched_env.scenarios.scenario import CommandName
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.reads import EVERYTHING, Reads
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, View


class LearnedScheduler:
    """A trained policy, from the file that export_policy wrote; decides as it does in the environment."""

    reads: Reads = EVERYTHING

    def __init__(self, policy: str | Path | ExportedPolicy | None = None) -> None:
        """``policy``: a file's path, a policy, or ``None``: what is shipped for the scenario of each episode.

        Raises:
            InputError: the file cannot be read, or was made for other observations.
        """
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
            InputError: the policy does not fit, or none is shipped for the scenario.
        """
        policy = self._given if self._given is not None else shipped_policy(scenario)
        layout = policy.layout_for(scenario)
        before = self._workspace
        if before is None or before.policy is not policy or before.layout != layout:
            self._workspace = _Workspace(policy, layout)

    def _uses(self, scenario: Offer) -> tuple[CommandName, ...]:
        """Commands of ``scenario`` that the policy has actions for; no other one asks it for a decision.

        Raises:
            InputError: as :meth:`prepare`.
        """
        policy = self._given if self._given is not None else shipped_policy(scenario)
        return policy.layout_for(scenario).uses(scenario.commands)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        self.prepare(knowledge)
        self._streams = knowledge.streams
        assert self._workspace is not None, "prepared"
        self._workspace.acting.reset(knowledge)

    def decide(self, view: View) -> Command:
        if self._workspace is None:
            raise InputError("the scheduler knows of no episode yet: call reset(knowledge, rng) first")
        return self._workspace.decide(view, self._streams)


class _Workspace:
    """A policy and the arrays that it works in, for problems with the same actions."""

    def __init__(self, policy: ExportedPolicy, layout: ActionLayout) -> None:
        with notice_compilation("policies"):
            from gpusched_env.agents.forward import act_on_view

        self.policy = policy
        self.layout = layout
        self._act_on_view = act_on_view
        self.acting = Acting(layout, policy.info.wait_us)
        slots, pending_slots, running_slots = layout.slots, layout.pending_slots, layout.running_slots
        plan = plan_of(layout)
        self._scalars = np.zeros(len(Scalar))
        self._choices = (layout.lookahead, plan.rows, plan.choices)
        self._shown = Shown(
            np.zeros((pending_slots, len(PendingColumn))), np.zeros((running_slots, len(RunningColumn)))
        )
        rows = {"pending": pending_slots, "running": running_slots, "tenants": slots}
        self._no_plan = np.zeros((0, 0))
        self._showing = (self._shown.pending, self._shown.running, np.zeros(slots, np.bool_))
        self._arrays: tuple[Any, ...] = (
            *(np.zeros((rows[name], len(TABLES[name])), np.float32) for name in rows),
            np.zeros(len(TABLES["device"]), np.float32),
            np.zeros(layout.n, np.bool_),
            policy.scratch(pending_slots),
            np.zeros(layout.n, np.float32),
        )

    def decide(self, view: View, streams: Sequence[StreamKnowledge]) -> Command:
        standing = self.acting.standing(view)
        if standing is not None:
            return standing
        return self.acting.command(self._action(view), view, streams, self._shown)

    def _action(self, view: View) -> int:
        policy = self.policy
        plan = plan_ahead(view) if self.layout.interval_us > 0.0 else self._no_plan
        self._scalars[:] = (view.time_us, view.horizon_us, view.sms, view.busy_sms, view.occupancy, view.dram)
        return int(self._act_on_view(
            policy.sizes, policy.weights, policy.info.masked, view.pending.array, view.running.array,
            view.tenants.array, self._scalars, *self._choices, *self._showing, plan, *self._arrays,
        ))  # fmt: skip
