"""What is legal now: one text for both devices, made of what each command says of itself.

What a command needs of launches, which each device keeps in its own way, is asked by
:mod:`gpusched_env.scheduling.commands.world`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.scheduling.commands.all import CODES, COMMANDS, Wait
from gpusched_env.scheduling.commands.world import offers


def offered(names: Iterable[str]) -> int:
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
