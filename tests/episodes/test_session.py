"""Running a scheduler: what it may ask of the set-up, and what it costs to ask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.devices.compiled import tables
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp, problem_for
from gpusched_env.scheduling.commands import Command, Launch, Wait
from gpusched_env.scheduling.contract import scheduler_rng
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, problem


class Poller:
    """Launches what it can and then looks every 10 us."""

    def __init__(self, commands: tuple[str, ...] = ()) -> None:
        self.set_up = SetUp(commands=commands)
        self.asked: list[float] = []

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
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


def test_a_problem_is_adapted_to_a_scheduler_once(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 35.0)]}, commands=["launch"])
    assert problem_for(make_scheduler("pass-through"), built) is built
    for name in ("time-slicing", "tally", "fikit(interception_us=1)"):
        adapted = problem_for(make_scheduler(name), built)
        assert adapted is not built
        assert problem_for(make_scheduler(name), built) is adapted
    assert problem_for(make_scheduler("fikit", interception_us=2.0), built) is not adapted
    again = problem_for(make_scheduler("fikit", interception_us=1.0), adapted)
    assert again.scenario.decision_us == 2.0, "it adds up"


@pytest.mark.parametrize("name", ["pass-through", "time-slicing", "tally", "fikit"])
def test_the_second_episode_uses_the_tables_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    built = problem(tmp_path, {"ops": [K(4, 35.0)]})
    made = []
    tabulation = tables._Tabulation
    monkeypatch.setattr(tables, "_Tabulation", lambda problem: made.append(problem) or tabulation(problem))  # type: ignore[func-returns-value]
    for seed in range(3):
        assert run_episode(make_scheduler(name), built, make_device("compiled"), seed).done
    assert len(made) == 1


def test_random_numbers_of_a_scheduler_differ_by_seed_and_repeat() -> None:
    drawn = [scheduler_rng(seed).random(3).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    spawned = [scheduler_rng(seed).spawn(1)[0].random() for seed in (1, 1, 2)]
    assert spawned[0] == spawned[1] != spawned[2]


class Seer(Poller):
    """Notes what it is told, in order."""

    clairvoyant = True

    def __init__(self) -> None:
        super().__init__()
        self.told: list[object] = []

    def see(self, truth: Problem, seed: int) -> None:
        self.told += [truth, seed]

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        self.told.append(knowledge)


def test_the_truth_is_for_who_asks_for_it(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 35.0)]})
    seer = Seer()
    run_episode(seer, built, CompiledDevice(), 7)
    truth = seer.told[0]
    assert isinstance(truth, Problem)
    assert truth is not built, "it may do what it likes with its own"
    assert (truth.scenario, truth.kernels, truth.programs) == (built.scenario, built.kernels, built.programs)
    assert seer.told[1:] == [7, built.knowledge]
    seer.clairvoyant = False
    run_episode(seer, built, CompiledDevice(), 7)
    assert seer.told[3:] == [built.knowledge]
