"""What makes a command illegal, on every device: read off what the device shows and what the scenario offers.

So the mask of an environment and a device's refusals cannot differ: both look at the same columns. What a scheduler
was given is never looked at again. What each command refuses is in its own module.
"""

from __future__ import annotations

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Wait
from gpusched_env.scheduling.commands.command import OperationOf
from gpusched_env.scheduling.plain import plain
from gpusched_env.scheduling.showing import Shown


def check(command: Command, view: Shown, problem: Problem, operation_of: OperationOf) -> Command:
    """Whether ``command`` may be given where the device shows ``view``.

    Args:
        operation_of: asked only where a launch is refused that waits for another one, and of tiles.

    Returns:
        what is to be carried out: the command in plain numbers.

    Raises:
        IllegalCommand: names the command, why it is not legal now, and what would be.
    """
    command = plain(command)
    offered = problem.scenario.commands
    if not isinstance(command, Wait) and command.NAME not in offered:
        raise IllegalCommand(f"{command}: scenario {problem.scenario.name} offers {', '.join(offered)} only")
    command.check(view, problem, operation_of)
    return command
