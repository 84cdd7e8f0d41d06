"""Random throttling: cases in which hosts may be made to sleep between their jobs."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.case import Case, RandomCommands
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import moves_of

THROTTLED = 0.25
"""Share of cases in which tenants may be throttled."""
RESTARTED = 0.3
"""Share of those in which a partition is a process's own, which is started anew with another one."""


def throttled(dice: Dice, case: Case, kernel_us: float) -> Case:
    """A case that offers what acts on hosts; ``kernel_us``: about how long a kernel takes."""
    names = tuple(move.NAME for move in moves_of("hosts"))
    scenario = replace(
        case.scenario,
        commands=(*case.scenario.commands, *names),
        restart_us=max(0.1, kernel_us * dice.number(1.0, 30.0)) if dice.chance(RESTARTED) else 0.0,
        throttle_us=0.0 if dice.chance(0.4) else max(0.1, kernel_us * dice.number(0.1, 3.0)),
    )
    player = case.player
    if isinstance(player, RandomCommands):
        weights = {move.NAME: dice.pick(move.DRAWN_WEIGHTS) for move in moves_of("hosts")}
        player = replace(player, weights=player.weights | weights)
    return replace(case, scenario=scenario, player=player)
