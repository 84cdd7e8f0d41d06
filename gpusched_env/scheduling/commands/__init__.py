"""What a scheduler may tell a device. Illegal commands are refused and change nothing.

Each command has a module: its fields, what it costs, when it is refused. Its code is its place in :data:`COMMANDS`. Its
share of an action space is in :mod:`gpusched_env.envs.slices`.
"""

from __future__ import annotations

from typing import Final

from gpusched_env.scheduling.commands.budget import SetBudget
from gpusched_env.scheduling.commands.command import Wait
from gpusched_env.scheduling.commands.launch import OWN_STREAM, PRIORITY_OF_STREAM, Launch
from gpusched_env.scheduling.commands.partition import Partition, SetPartition
from gpusched_env.scheduling.commands.preempt import MODES, Preempt, PreemptionMode
from gpusched_env.scheduling.commands.reject import Reject
from gpusched_env.scheduling.commands.reshape import Reshape
from gpusched_env.scheduling.commands.synchronise import Synchronise
from gpusched_env.scheduling.commands.throttle import MOST_PAUSE_US, Throttle
from gpusched_env.scheduling.synchronising import ORDERS, POLICIES, PolicyKind, TileOrder, TilePolicy, conv2d

__all__ = [
    "CODES", "COMMANDS", "LAUNCH", "MODES", "MOST_PAUSE_US", "NOTHING", "ORDERS", "OWN_STREAM", "POLICIES",
    "PREEMPT", "PRIORITY_OF_STREAM", "REJECT", "RESHAPE", "SET_BUDGET", "SET_PARTITION", "SYNCHRONISE", "THROTTLE",
    "WAIT", "WAITING", "Command", "Launch", "Partition", "PolicyKind", "Preempt", "PreemptionMode", "Reject",
    "Reshape", "SetBudget", "SetPartition", "Synchronise", "Throttle", "TileOrder", "TilePolicy", "Wait", "conv2d",
]  # fmt: skip

Command = Launch | Preempt | SetPartition | Reject | Synchronise | Reshape | Throttle | SetBudget | Wait

COMMANDS: Final[tuple[type[Command], ...]] = (
    Launch,
    Preempt,
    SetPartition,
    Reject,
    Synchronise,
    Reshape,
    Throttle,
    SetBudget,
    Wait,
)
"""Kinds of commands by code: that of the timeline, and of compiled code. ``Wait`` is last and in no timeline."""
CODES: Final[dict[type[Command], int]] = {command: code for code, command in enumerate(COMMANDS)}
LAUNCH: Final = CODES[Launch]
PREEMPT: Final = CODES[Preempt]
SET_PARTITION: Final = CODES[SetPartition]
REJECT: Final = CODES[Reject]
SYNCHRONISE: Final = CODES[Synchronise]
RESHAPE: Final = CODES[Reshape]
THROTTLE: Final = CODES[Throttle]
SET_BUDGET: Final = CODES[SetBudget]
WAITING: Final = CODES[Wait]
NOTHING: Final = -1

WAIT = Wait()
