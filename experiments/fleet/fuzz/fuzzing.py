"""What is fuzzed of fleets."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.fleet.fuzz.case import FleetCounterexample
from gpusched_env.experiments.fleet.fuzz.devices import new_fleet_device
from gpusched_env.experiments.fleet.fuzz.draw import draw_fleet
from gpusched_env.experiments.fleet.fuzz.duel import play_fleet
from gpusched_env.experiments.fleet.fuzz.shrink import FleetShrinker
from gpusched_env.experiments.fuzz.fuzzing import Fuzzing

FLEETS: Final = Fuzzing(new_fleet_device, draw_fleet, play_fleet, FleetShrinker, FleetCounterexample)
