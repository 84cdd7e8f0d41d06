"""What a scheduler may tell a device. Illegal commands are refused and change nothing.

Each command has a module: its fields, what it costs, when it is refused. Its code is its place in :data:`COMMANDS`. Its
share of an action space is in :mod:`gpusched_env.envs.slices`.
"""

from gpusched_env.scheduling.commands.all import (
    CODES,
    COMMANDS,
    LAUNCH,
    NOTHING,
    PREEMPT,
    REJECT,
    RESHAPE,
    SET_BUDGET,
    SET_PARTITION,
    SYNCHRONISE,
    THROTTLE,
    WAIT,
    WAITING,
    Command,
)
from gpusched_env.scheduling.commands.budget import SetBudget
from gpusched_env.scheduling.commands.launch import OWN_STREAM, STREAM_S_PRIORITY, Launch
from gpusched_env.scheduling.commands.numbers import GIVEN, command_of, write_numbers
from gpusched_env.scheduling.commands.partition import Partition, SetPartition
from gpusched_env.scheduling.commands.preempt import MODES, Preempt, PreemptionMode
from gpusched_env.scheduling.commands.reject import Reject
from gpusched_env.scheduling.commands.reshape import Reshape
from gpusched_env.scheduling.commands.synchronise import Synchronise
from gpusched_env.scheduling.commands.throttle import MOST_PAUSE_US, Throttle
from gpusched_env.scheduling.commands.wait import Wait
from gpusched_env.scheduling.tile_policy import ORDERS, POLICIES, PolicyKind, TileOrder, TilePolicy, conv2d

__all__ = [
    "CODES", "COMMANDS", "GIVEN", "LAUNCH", "MODES", "MOST_PAUSE_US", "NOTHING", "ORDERS", "OWN_STREAM", "POLICIES",
    "PREEMPT", "REJECT", "RESHAPE", "SET_BUDGET", "SET_PARTITION", "STREAM_S_PRIORITY", "SYNCHRONISE", "THROTTLE",
    "WAIT", "WAITING", "Command", "Launch", "Partition", "PolicyKind", "Preempt", "PreemptionMode", "Reject",
    "Reshape", "SetBudget", "SetPartition", "Synchronise", "Throttle", "TileOrder", "TilePolicy", "Wait",
    "command_of", "conv2d", "write_numbers",
]  # fmt: skip
