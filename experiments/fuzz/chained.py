"""Who plays programs most of whose kernels need the tiles of others: somebody who mostly synchronises them, launches
consumers before or behind their producers, and takes off the GPU what waits there."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.case import Baseline, Case, RandomCommands
from gpusched_env.experiments.fuzz.dice import Dice

SYNCHRONISERS = ("cusync", "cusync-predicted")


def synchronising(dice: Dice, case: Case) -> Case:
    """A case of such programs with a look-ahead that shows pairs, and such a player."""
    scenario, player = case.scenario, case.player
    commands = scenario.commands
    if "preempt" not in commands and dice.chance(0.6):
        commands = (commands[0], "preempt", *commands[1:])
    scenario = replace(scenario, lookahead=dice.integer(3, 12), commands=commands)
    match player:
        case RandomCommands():
            often = {
                "launch": dice.number(1.0, 5.0),
                "synchronise": dice.pick((3.0, 30.0)),
                "preempt": dice.pick((0.0, 0.3, 2.0)),
            }
            player = replace(player, weights=player.weights | often, oldest=dice.pick((0.5, 0.9, 1.0)))
        case Baseline():
            # Its set-up is that of others: such a case needs no contexts of its own.
            player = replace(player, name=dice.pick(SYNCHRONISERS))
            scenario = replace(scenario, contexts="per-tenant" if dice.chance(0.3) else "shared")
        case _:
            pass
    return replace(case, scenario=scenario, player=player)
