"""What an agent can do: one flat number for a command, and the mask of the legal ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpusched_env.envs.action_fields import ActionFields
from gpusched_env.envs.numbering import (
    CHOICES,
    FIRST,
    SLOTS,
    action_of_command,
    fill_mask,
    slice_layout_of,
    write_meaning,
)
from gpusched_env.envs.observations import ShownLaunches, select
from gpusched_env.envs.slices import OTHERS, Slice
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.hardware.clock import to_ps, to_us
from gpusched_env.planning.interval import BY_PLAN, UNRESTRICTED, Serve
from gpusched_env.scenarios.knowledge import StreamKnowledge
from gpusched_env.scenarios.scenario import CommandName
from gpusched_env.scenarios.tenant_program import Stream
from gpusched_env.scheduling.commands import (
    NOTHING,
    Command,
    Launch,
    Reject,
    SetPartition,
    Wait,
)
from gpusched_env.scheduling.commands.partition import range_or_all
from gpusched_env.scheduling.legality import COMMAND_RECORD, command_of, write_numbers
from gpusched_env.scheduling.view import PendingColumn, View

Streams = Sequence[Stream | StreamKnowledge]
"""Streams of a problem, or as a scheduler knows them."""


@dataclass(frozen=True, slots=True)
class ActionLayout(ActionFields):
    """The meaning of the numbers of a ``Discrete`` action space.

    In this order: wait; launch what stands in a pending slot; preempt what stands in a running slot; confine a tenant
    to a share of the SMs; reject a job of a tenant; and so on. What there is to choose for each slot is declared in
    :mod:`gpusched_env.envs.slices`; what a scenario does not offer has no actions. Where a decision stands for an
    interval: go by the plan; let a tenant go first; reject a job of a tenant. Pending slot
    ``tenant * lookahead + k`` has the ``k``-th oldest pending launch of a tenant.
    """

    @property
    def n(self) -> int:
        """Number of actions."""
        return slice_layout_of(self).n

    def space(self) -> spaces.Discrete:
        return spaces.Discrete(self.n)

    def uses(self, offered: Sequence[CommandName]) -> tuple[CommandName, ...]:
        """The commands of ``offered`` that follow from actions; no other one asks for a decision."""
        used = {name for name, _ in self.parts()}
        if self.interval_us > 0.0:
            used |= {Launch.NAME, Reject.NAME}
        return tuple(command for command in offered if command in used)

    def choices(self, name: str) -> int:
        """How many actions each slot of a command has; ``name``: as in ``Scenario.commands``."""
        laid = slice_layout_of(self)
        return next((int(row[CHOICES]) for each, row in zip(laid.slices, laid.rows, strict=True) if _is(each, name)), 0)

    def first(self, name: str) -> int:
        """The first action of a command, which is on offer."""
        laid = slice_layout_of(self)
        return next(int(row[FIRST]) for each, row in zip(laid.slices, laid.rows, strict=True) if _is(each, name))

    def mask(self, view: View, shown: ShownLaunches | None = None) -> NDArray[np.bool_]:
        """Which actions are legal in ``view``, shape ``(n,)``; waiting (action 0) always is.

        Exactly the actions whose command the device would accept now, but for three kinds: where a tenant's oldest job
        is its newest, only the first of the two actions; no way of launching or synchronising a consumer of tiles by
        which it could take the slots that its producer needs; and no budget of a core without processes.
        """
        legal = np.empty(self.n, np.bool_)
        laid = slice_layout_of(self)
        shown = shown if shown is not None else self.select(view)
        tables = shown.pending, shown.running, view.tenants.array, view.cores.array
        fill_mask(laid.rows, laid.choices, *tables, view.sms, legal)
        return legal

    def select(self, view: View) -> ShownLaunches:
        """What the slots show of ``view``."""
        return select(view, self.slots, self.running_slots, self.lookahead)

    def decode(
        self, action: int, view: View, *, wait_us: float, streams: Streams = (), shown: ShownLaunches | None = None
    ) -> Command:
        """The command that ``action`` stands for in ``view``.

        Args:
            action: its number.
            view: the state that it is chosen in.
            wait_us: a wait ends after this at the latest.
            streams: of the problem; needed where the scheduler has streams of its own.
            shown: what the slots show of ``view``, if that is known.

        Raises:
            IllegalCommand: the action's slot is empty.
            InputError: not an action of this layout.
        """
        name, slot, _ = self.split(action)
        if action == 0:
            # The wait is rounded, not its end: as in compiled code.
            return Wait(to_us(to_ps(view.time_us) + max(1, to_ps(wait_us))))
        if name == Serve.NAME:
            raise InputError(f"action {action} sets knobs, it is no command: serve() says which")
        given = np.zeros(1, COMMAND_RECORD)[0]
        given["code"] = write_meaning(*[*self._context(view, shown, streams), action, given])
        if given["code"] == NOTHING:
            raise IllegalCommand(f"action {action}: {self._slice(name).slots} slot {slot} has nothing to {name}")
        return command_of(given)

    def serve(self, action: int) -> Serve | None:
        """What an action says about an interval; ``None``: nothing, it is a command."""
        name, slot, choice = self.split(action)
        if self.interval_us == 0.0 or (action > 0 and name != Serve.NAME):
            return None
        if action > 0:
            return Serve(slot, OTHERS[choice])
        return UNRESTRICTED if self.knobs else BY_PLAN

    def serving(self, serve: Serve) -> int | None:
        """The inverse of :meth:`serve`; ``None``: so many launches in flight of the others are not on offer."""
        if serve in (BY_PLAN, UNRESTRICTED):
            return 0
        if serve.others not in OTHERS:
            return None
        return self.first(Serve.NAME) + serve.tenant * len(OTHERS) + OTHERS.index(serve.others)

    def action_of(
        self, command: Command, view: View, *, streams: Streams = (), shown: ShownLaunches | None = None
    ) -> int | None:
        """The action that stands for ``command`` in ``view``: the inverse of :meth:`decode`.

        A wait is action 0, whatever its end. A launch at the priority of its stream is one at that priority.

        Args:
            command: whatever a scheduler may give.
            view: the state that it is given in.
            streams: of the problem; needed for launches that leave stream or priority open, and where the scheduler
                has streams of its own.
            shown: what the slots show of ``view``, if that is known.

        Returns:
            ``None`` if no action does: a launch that no slot shows, a stream priority, mode, partition or job that is
            not on offer, or a launch with a partition of its own.
        """
        if isinstance(command, Wait):
            return 0
        if isinstance(command, Launch):
            command = explicit_launch(command, view, streams)
        elif isinstance(command, SetPartition) and range_or_all(command.partition, view.sms) == (0, view.sms):
            command = replace(command, partition=None)
        given = np.zeros(2, COMMAND_RECORD)
        words = given.view(np.int64).reshape(2, -1)
        write_numbers(command, words[0])
        action = action_of_command(*[*self._context(view, shown, streams), given, words])
        return int(action) if action > 0 else None

    def describe(self, action: int, tenants: Sequence[str] = ()) -> str:
        """What ``action`` does, in words; ``tenants``: names in place of rows.

        Raises:
            InputError: not an action of this layout.
        """
        name, slot, choice = self.split(action)
        if action == 0:
            return name
        return f"{self.subject(name, slot, tenants)}: {self.words(name)[choice]}"

    def subject(self, name: str, slot: int, tenants: Sequence[str] = ()) -> str:
        """What the actions of a command's slot are about, in words; arguments as for :meth:`describe`."""
        part = self._slice(name)
        if part.slots == "running":
            return part.subject.format(f"the kernel in running slot {slot}")
        if part.slots == "core":
            return part.subject.format(f"the CPU core in row {slot}")
        row, k = divmod(slot, self.lookahead) if part.slots == "pending" else (slot, 0)
        tenant = tenants[row] if row < len(tenants) else f"tenant {row}"
        which = "the pending kernel" if self.lookahead == 1 else f"pending kernel {k}"
        return part.subject.format(f"{which} of {tenant}" if part.slots == "pending" else tenant)

    def words(self, name: str) -> list[str]:
        """What there is to choose for each slot of a command, in words."""
        part = self._slice(name)
        return [part.words(a, b) for a, b in part.choices(self)]

    def labels(self, name: str) -> list[str]:
        """Under which names the choices of a command are counted."""
        part = self._slice(name)
        return [part.label(a, b) for a, b in part.choices(self)]

    def tenant_of(self, name: str, slot: int) -> int | None:
        """Row of the tenant that a slot of a command belongs to; ``None``: a core, or whoever's launch stands there."""
        kind = self._slice(name).slots
        return None if kind in ("running", "core") else slot // self.lookahead if kind == "pending" else slot

    def split(self, action: int) -> tuple[str, int, int]:
        """Name (``wait``, or as in ``Scenario.commands``), slot and number of the choice of ``action``.

        Raises:
            InputError: not an action of this layout.
        """
        laid = slice_layout_of(self)
        if not 0 <= action < laid.n:
            raise InputError(f"action {action} is not in 0..{laid.n - 1}")
        for part, row in zip(laid.slices, laid.rows.tolist(), strict=True):
            if 0 <= action - row[FIRST] < row[SLOTS] * row[CHOICES]:
                return part.command.NAME, *divmod(action - row[FIRST], row[CHOICES])
        return Wait.NAME, 0, 0

    def parts(self) -> list[tuple[str, int]]:
        """Commands on offer with the number of their slots, in the order of their actions."""
        laid = slice_layout_of(self)
        return [(part.command.NAME, int(row[SLOTS])) for part, row in zip(laid.slices, laid.rows, strict=True)]

    def _slice(self, name: str) -> Slice:
        return next(part for part in slice_layout_of(self).slices if _is(part, name))

    def _context(self, view: View, shown: ShownLaunches | None, streams: Streams) -> Any:
        laid = slice_layout_of(self)
        shown = shown if shown is not None else self.select(view)
        own = self.own_streams_from(streams)
        tables = shown.pending, shown.running, view.tenants.array, view.cores.array
        return laid.rows, laid.choices, *tables, view.sms, own

    def own_streams_from(self, streams: Streams) -> int:
        """Row of the first of the scheduler's own streams among a problem's, which are its last ones.

        Raises:
            InputError: the problem has fewer streams than that.
        """
        if len(streams) < self.streams:
            raise InputError(f"the layout has {self.streams} streams of the scheduler's own; streams are {streams}")
        return len(streams) - self.streams


def explicit_launch(command: Launch, view: View, streams: Streams) -> Launch:
    """A launch with its stream priority as a number, and its own stream as ``None``; ``streams``: of the problem."""
    rows = np.flatnonzero(view.pending.id == command.launch)
    if not rows.size:
        return command
    own = int(view.pending.array[rows[0], PendingColumn.STREAM])
    stream = None if command.stream == own else command.stream
    priority = command.priority
    if priority is None:
        row = own if stream is None else stream
        # A kernel that was launched from the device is in no stream.
        priority = streams[row].priority if 0 <= row < len(streams) else 0
    return replace(command, priority=priority, stream=stream)


def _is(part: Slice, name: str) -> bool:
    return bool(name == part.command.NAME)
