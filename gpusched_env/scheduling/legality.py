"""What makes a command illegal, on every device: read off what the device shows and what the scenario offers.

So the mask of an environment and a device's refusals cannot differ: both look at the same columns. What a scheduler
was given is never looked at again. What each command refuses is in its own module.

What is legal at all is one text for both devices, made of what each command says of itself. What that needs of
launches, which each device keeps in its own way, is asked by :mod:`gpusched_env.scheduling.commands.world`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import CODES, COMMANDS, Command, Wait
from gpusched_env.scheduling.commands.command import OperationOf
from gpusched_env.scheduling.commands.world import offers
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


def offered_bits(names: Iterable[str]) -> int:
    """Commands that a scenario offers, as :func:`~gpusched_env.scheduling.commands.world.offers` has them."""
    return sum(1 << CODES[command] for command in COMMANDS if command.NAME in names)


@procedure
def _none(w: Any) -> Any:
    return False


@procedure
def _no_columns(w: Any, tenant: int, row: Any) -> None:
    pass


def _either(code: int, anywhere: Callable[..., Any], others: Callable[..., Any]) -> Callable[..., Any]:
    @procedure
    def either(w: Any) -> Any:
        return (offers(w, code) and anywhere(w)) or others(w)

    return either


def _both(code: int, show: Callable[..., Any], others: Callable[..., Any]) -> Callable[..., Any]:
    @procedure
    def both(w: Any, tenant: int, row: Any) -> None:
        show(w, tenant, row, offers(w, code))
        others(w, tenant, row)

    return both


any_legal: Callable[..., Any] = _none
"""Whether a command other than waiting is legal in ``w``, of those that the scenario offers."""
show_tenant: Callable[..., Any] = _no_columns
"""Fill the columns of ``w``'s row of ``tenant`` in ``view.tenants`` that say which commands are legal for it."""
for _command in reversed(COMMANDS):
    if _command is not Wait:
        any_legal = _either(CODES[_command], _command.anywhere, any_legal)
    if _command.show is not None:
        show_tenant = _both(CODES[_command], _command.show, show_tenant)
