"""What is fuzzed of fleets."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
from gpusched_env.games.fleet.experiments.fuzz.case import FleetCounterexample
from gpusched_env.games.fleet.experiments.fuzz.devices import new_fleet_device
from gpusched_env.games.fleet.experiments.fuzz.draw import draw_fleet
from gpusched_env.games.fleet.experiments.fuzz.duel import play_fleet
from gpusched_env.games.fleet.experiments.fuzz.shrink import FleetShrinker

FLEETS: Final = Fuzzing(new_fleet_device, draw_fleet, play_fleet, FleetShrinker, FleetCounterexample)
