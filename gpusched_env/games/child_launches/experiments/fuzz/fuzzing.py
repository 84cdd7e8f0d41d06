"""What is fuzzed of child launches."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
from gpusched_env.games.child_launches.experiments.fuzz.case import LaunchCounterexample
from gpusched_env.games.child_launches.experiments.fuzz.draw import draw_launches
from gpusched_env.games.child_launches.experiments.fuzz.duel import play_launches
from gpusched_env.games.child_launches.experiments.fuzz.shrink import LaunchShrinker
from gpusched_env.games.child_launches.experiments.schedulers import new_launch_device

CHILD_LAUNCHES: Final = Fuzzing(new_launch_device, draw_launches, play_launches, LaunchShrinker, LaunchCounterexample)
