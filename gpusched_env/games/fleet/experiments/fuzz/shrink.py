"""From a case of a fleet on which two devices differ to a simpler one on which they still do."""

from __future__ import annotations

from gpusched_env.experiments.fuzz.trees import GONE, SECONDS, TreeShrinker, simpler_numbers
from gpusched_env.games.fleet.experiments.fuzz.case import FleetCase
from gpusched_env.games.fleet.experiments.fuzz.duel import MakeFleet, play_fleet

ROUNDS = 5
OPTIONS = r"jobs/\d+/(?!arrival).*|kinds/\d+/.*|restart_us|rule|placed|moved|misused|seed|control|scheduler"
NUMBERS = r"jobs/.*|kinds/.*|rates/.*|reports|report_us|restart_us|placed|moved|misused|seed"


class FleetShrinker(TreeShrinker[FleetCase]):
    """Greedy, as the one of the other devices."""

    def __init__(self, case: FleetCase, device: MakeFleet, against: MakeFleet, *, seconds: float = SECONDS) -> None:
        super().__init__(case, lambda tried: play_fleet(tried, device, against).difference, seconds=seconds)

    def _simplify_all(self) -> None:
        for _ in range(ROUNDS):
            before = self._tree
            self._shorten(("jobs",))
            self._shorten(("kinds",))
            self._everywhere(OPTIONS, lambda _: [GONE])
            self._everywhere(NUMBERS, simpler_numbers)
            if self._tree == before:
                break
