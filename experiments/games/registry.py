"""The game of a problem."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game
from gpusched_env.scenarios.games import GAMES, KERNELS, load_room, rooms_of


def game_of(problem: object) -> Game:
    """That of a game's name, or of a scenario, its name or file."""
    found: Game = load_room(rooms_of(problem).game)
    return found


def common_game(problems: Sequence[object]) -> Game:
    """The game that all ``problems`` are of; without any, that of scenarios.

    Raises:
        InputError: they are of several.
    """
    apart = [problem for problem in problems if rooms_of(problem) != rooms_of(problems[0])]
    if apart:
        raise InputError(f"{problems[0]} and {apart[0]} are different games: each is ranked by itself")
    return game_of(problems[0] if problems else None)


def games() -> dict[str, Game]:
    """All of them, by name; that of scenarios comes first and has none."""
    found: list[tuple[str, Game]] = [("", load_room(KERNELS.game)), *((name, game_of(name)) for name in GAMES)]
    return dict(found)
