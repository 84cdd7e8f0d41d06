"""What an agent can do: one flat number for a command, and the mask of the legal ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpusched_env.envs.encoding import ID, NO_KERNEL, Floats
from gpusched_env.envs.masking import DRAIN, RESET, SAVE, fill_mask, partition_first, partition_sms
from gpusched_env.envs.observations import Shown, select
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scheduling.commands import Command, Launch, Partition, Preempt, PreemptionMode, SetPartition, Wait
from gpusched_env.scheduling.view import View

QUARTERS = (1, 2, 3, 4)
"""Partition sizes on offer, in quarters of the GPU's SMs (rounded down, at least one SM).

Tenants in even rows count their SMs from rank 0, tenants in odd rows from the other end, so that two
tenants can be kept apart.
"""

MODE_CODES: dict[PreemptionMode, int] = {"drain": DRAIN, "save": SAVE, "reset": RESET}


@dataclass(frozen=True, slots=True)
class ActionLayout:
    """The meaning of the numbers of a ``Discrete`` action space.

    In this order: wait; launch the kernel of pending slot ``s`` at stream priority ``p``
    (``1 + s * len(stream_priorities) + p``); preempt the kernel of running slot ``r`` in mode ``m``;
    confine tenant ``s`` to a share of the SMs. The last two exist only where the scenario offers them.
    """

    slots: int
    running_slots: int
    stream_priorities: tuple[int, ...]
    modes: tuple[PreemptionMode, ...] = ()
    """Preemption modes; empty without preemption."""
    quarters: tuple[int, ...] = ()
    """Partition sizes in quarters of the GPU; empty without partitions."""

    @classmethod
    def of(cls, scenario: Offer, slots: int, running_slots: int) -> ActionLayout:
        """The actions that ``scenario`` offers.

        Raises:
            InputError: the scenario does not offer launches.
        """
        if "launch" not in scenario.commands:
            raise InputError(f"scenario {scenario.name}: commands {scenario.commands} lack 'launch'; nothing could run")
        if not scenario.stream_priorities:
            raise InputError(f"scenario {scenario.name}: stream_priorities is empty; give at least (0,)")
        return cls(
            slots=slots,
            running_slots=running_slots,
            stream_priorities=scenario.stream_priorities,
            modes=scenario.preemption if "preempt" in scenario.commands else (),
            quarters=QUARTERS if "partition" in scenario.commands else (),
        )

    @property
    def n(self) -> int:
        """Number of actions."""
        return self._first_partition + self.slots * len(self.quarters)

    def space(self) -> spaces.Discrete:
        return spaces.Discrete(self.n)

    def mask(self, view: View, shown: Shown | None = None) -> NDArray[np.bool_]:
        """Which actions are legal in ``view``, shape ``(n,)``; waiting (action 0) always is.

        Exactly the actions whose command the device would accept now.
        """
        shown = shown if shown is not None else select(view, self.slots, self.running_slots)
        legal = np.empty(self.n, np.bool_)
        fill_mask(
            shown.pending,
            shown.running,
            view.tenants.array,
            view.sms,
            len(self.stream_priorities),
            np.array([MODE_CODES[mode] for mode in self.modes], np.int64),
            np.array(self.quarters, np.int64),
            legal,
        )
        return legal

    def decode(self, action: int, view: View, *, wait_us: float, shown: Shown | None = None) -> Command:
        """The command that ``action`` stands for in ``view``; a wait ends after ``wait_us`` at the latest.

        Raises:
            IllegalCommand: the action's slot is empty.
            InputError: not an action of this layout.
        """
        kind, slot, choice = self.split(action)
        shown = shown if shown is not None else select(view, self.slots, self.running_slots)
        if kind == "launch":
            kernel = _kernel(shown.pending[slot], action, f"pending slot {slot}")
            return Launch(kernel, priority=self.stream_priorities[choice])
        if kind == "preempt":
            kernel = _kernel(shown.running[slot], action, f"running slot {slot}")
            return Preempt(kernel, self.modes[choice])
        if kind == "partition":
            if slot >= len(view.tenants):
                raise IllegalCommand(f"action {action}: tenant slot {slot} is empty")
            sms = partition_sms(view.sms, self.quarters[choice])
            first = partition_first(view.sms, self.quarters[choice], slot)
            return SetPartition(slot, None if sms == view.sms else Partition(first, sms))
        return Wait(view.time_us + wait_us)

    def action_of(self, command: Command, view: View, shown: Shown | None = None) -> int | None:
        """The action that stands for ``command`` in ``view``: the inverse of :meth:`decode`.

        A wait is action 0, whatever its end.

        Returns:
            ``None`` if no action does: a kernel that no slot shows, a stream priority, mode or partition that is not
            on offer, or a launch with a partition of its own.
        """
        shown = shown if shown is not None else select(view, self.slots, self.running_slots)
        match command:
            case Wait():
                return 0
            case Launch(kernel, priority, partition):
                found = np.flatnonzero(shown.pending[:, ID] == kernel)
                if not found.size or partition is not None or priority not in self.stream_priorities:
                    return None
                return 1 + int(found[0]) * len(self.stream_priorities) + self.stream_priorities.index(priority)
            case Preempt(kernel, mode):
                found = np.flatnonzero(shown.running[:, ID] == kernel)
                if not found.size or mode not in self.modes:
                    return None
                return self._first_preempt + int(found[0]) * len(self.modes) + self.modes.index(mode)
            case SetPartition(tenant, partition):
                for choice, quarters in enumerate(self.quarters):
                    sms = partition_sms(view.sms, quarters)
                    offered = Partition(partition_first(view.sms, quarters, tenant), sms) if sms != view.sms else None
                    if partition == offered:
                        return self._first_partition + tenant * len(self.quarters) + choice
                return None

    def describe(self, action: int) -> str:
        """What ``action`` does, in words.

        Raises:
            InputError: not an action of this layout.
        """
        kind, slot, choice = self.split(action)
        if kind == "launch":
            return f"launch the pending kernel of tenant {slot} at stream priority {self.stream_priorities[choice]}"
        if kind == "preempt":
            return f"preempt the kernel in running slot {slot}: {self.modes[choice]}"
        if kind == "partition":
            return f"confine tenant {slot} to {self.quarters[choice]}/4 of the SMs"
        return "wait"

    @property
    def _first_preempt(self) -> int:
        return 1 + self.slots * len(self.stream_priorities)

    @property
    def _first_partition(self) -> int:
        return self._first_preempt + self.running_slots * len(self.modes)

    def split(self, action: int) -> tuple[Literal["wait", "launch", "preempt", "partition"], int, int]:
        """Kind, slot and choice (which priority, mode or size) of ``action``.

        Raises:
            InputError: not an action of this layout.
        """
        if not 0 <= action < self.n:
            raise InputError(f"action {action} is not in 0..{self.n - 1}")
        if action == 0:
            return "wait", 0, 0
        if action < self._first_preempt:
            return "launch", *divmod(action - 1, len(self.stream_priorities))
        if action < self._first_partition:
            return "preempt", *divmod(action - self._first_preempt, len(self.modes))
        return "partition", *divmod(action - self._first_partition, len(self.quarters))


def _kernel(row: Floats, action: int, where: str) -> int:
    """The launch id in a row of a shown table."""
    if row[ID] == NO_KERNEL:
        raise IllegalCommand(f"action {action}: {where} is empty")
    return int(row[ID])
