"""What is fuzzed of child launches."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.dynamic_parallelism.fuzz.case import LaunchCounterexample
from gpusched_env.experiments.dynamic_parallelism.fuzz.draw import draw_launches
from gpusched_env.experiments.dynamic_parallelism.fuzz.duel import play_launches
from gpusched_env.experiments.dynamic_parallelism.fuzz.shrink import LaunchShrinker
from gpusched_env.experiments.dynamic_parallelism.schedulers import new_launch_device
from gpusched_env.experiments.fuzz.fuzzing import Fuzzing

CHILD_LAUNCHES: Final = Fuzzing(new_launch_device, draw_launches, play_launches, LaunchShrinker, LaunchCounterexample)
