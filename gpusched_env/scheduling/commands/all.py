"""All commands, and the code of each."""

from __future__ import annotations

from typing import Final

from gpusched_env.scheduling.commands.budget import SetBudget
from gpusched_env.scheduling.commands.launch import Launch
from gpusched_env.scheduling.commands.partition import SetPartition
from gpusched_env.scheduling.commands.preempt import Preempt
from gpusched_env.scheduling.commands.reject import Reject
from gpusched_env.scheduling.commands.reshape import Reshape
from gpusched_env.scheduling.commands.synchronise import Synchronise
from gpusched_env.scheduling.commands.throttle import Throttle
from gpusched_env.scheduling.commands.wait import Wait

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
"""By code: that of the timeline, and of compiled code. ``Wait`` is last and in no timeline."""
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
