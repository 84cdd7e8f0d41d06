"""Running a scheduler: what it may ask of the set-up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Launch, Wait
from gpusched_env.scheduling.session import run_episode
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, problem


class Poller:
    """Launches what it can and then looks every 10 us."""

    def __init__(self, commands: tuple[str, ...] = ()) -> None:
        self.commands = commands
        self.asked: list[float] = []

    def reset(self, problem: Problem, rng: np.random.Generator) -> None:
        """Nothing to forget."""

    def decide(self, view: View) -> Command:
        self.asked.append(view.time_us)
        return Launch(int(view.pending.id[0])) if len(view.pending) else Wait(view.time_us + 10.0)


@pytest.mark.parametrize(("commands", "asked"), [((), [0.0]), (("preempt",), [0.0, 0.0, 10.0, 20.0, 30.0])])
def test_a_scheduler_that_preempts_is_asked_while_something_runs(
    tmp_path: Path, commands: tuple[str, ...], asked: list[float]
) -> None:
    """One kernel of 35 us: without preemption nothing is left to decide once it is launched."""
    built = problem(tmp_path, {"ops": [K(4, 35.0)]}, commands=["launch"])
    poller = Poller(commands)
    episode = run_episode(poller, built, CompiledDevice(), 0)
    assert episode.done
    assert poller.asked == asked
    assert episode.problem.scenario.commands == ("launch", *commands)
    assert built.scenario.commands == ("launch",)
