"""Schedulers and devices by name, module or file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpusched_env.agents import shipped
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.baselines.fifo import Fifo
from gpusched_env.baselines.mps import Mps
from gpusched_env.baselines.registry import honest_names
from gpusched_env.errors import InputError
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.lib.names import (
    all_schedulers,
    check_scheduler,
    describe_scheduler,
    new_device,
    new_scheduler,
)
from gpusched_env.experiments.lib.trained import learned_file
from gpusched_env.games.child_launches.experiments.game import new_launch_scheduler
from gpusched_env.games.fleet.experiments.game import new_dispatcher
from gpusched_env.games.task_queues.experiments.game import new_task_scheduler
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.contract import Scheduler
from tests.agents.made_up import made_up, written
from tests.refusals import refused


def test_a_registered_name_a_class_an_object_and_a_reference_all_do() -> None:
    shared = Fifo()
    assert type(new_scheduler("fifo")) is Fifo
    assert type(new_scheduler(Fifo)) is Fifo
    assert new_scheduler(shared) is shared
    assert type(new_scheduler("gpusched_env.baselines.fifo:Fifo")) is Fifo
    assert type(new_scheduler(lambda: Fifo())) is Fifo


def test_options_follow_the_name_of_either_kind() -> None:
    for source in ("mps(share=50)", "gpusched_env.baselines.mps:Mps(share=50)"):
        check_scheduler(source)
        assert type(new_scheduler(source)) is Mps
        assert describe_scheduler(source) == describe_scheduler("mps")


def test_a_file_is_loaded_once_and_described_by_its_docstring(fake: Callable[[str], str]) -> None:
    assert type(new_scheduler(fake("Patient"))) is type(new_scheduler(fake("Patient")))
    assert describe_scheduler(fake("Patient")) == "Waits, always."
    assert type(new_device(fake("FakeDevice"))).__name__ == "FakeDevice"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("fifoo", "did you mean 'fifo'"),
        ("no.such.module:X", "cannot import 'no.such.module'"),
        ("gpusched_env.baselines.fifo:Fifa", "did you mean 'Fifo'"),
        ("missing.py:X", "no such file: missing.py"),
        ("mpss(share=50)", "unknown scheduler 'mpss'; did you mean 'mps'"),
        ("mps(shares=50)", "scheduler 'mps' has no option 'shares'; did you mean 'share'"),
        ("mps(share=0)", "share is 0.0, must be above 0"),
        ("gpusched_env.baselines.mps:Mps(share=half)", "share=half: Expected `float | null`"),
        ("gpusched_env.baselines.fifo:np", "is no scheduler"),
        ("learned:", "expected learned:PATH"),
        ("learned:missing.npz", "missing.npz: no such file"),
        ("learned(interval_us=0.5)", r"interval_us is 0\.5, must be a finite number of at least 1"),
        ("learned(interval=500)", "scheduler 'learned' has no option 'interval'; did you mean 'interval_us'"),
        ("lerned", "unknown scheduler 'lerned'; did you mean 'learned'"),
    ],
)
def test_wrong_names_are_refused(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_scheduler(source)


def test_a_file_that_does_not_load_is_named(tmp_path: Path) -> None:
    file = tmp_path / "half.py"
    file.write_text("class Half(:\n")
    with refused(InputError, "half.py"):
        check_scheduler(f"{file}:Half")


def test_trained_agents_by_path_and_by_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    policy = made_up("Toy")
    written(policy, tmp_path / "Toy.npz")
    named = f"learned:{tmp_path / 'Toy.npz'}"
    assert isinstance(new_scheduler(named), Scheduler)
    assert describe_scheduler(named).startswith("Trained agent: maskable-ppo with policy slots")
    toy, other = load_scenario("Toy"), load_scenario("ThreeTenants")
    for source in ("learned", named):
        check_scheduler(source, toy)
    with refused(InputError, "ThreeTenants", "Toy"):
        check_scheduler("learned", other)
    with refused(InputError, "(0,)", "ThreeTenants"):
        check_scheduler(named, other)
    assert all_schedulers(toy) == [*honest_names(windowed=False), "learned"]
    assert all_schedulers(other) == honest_names(windowed=False)
    found = compare(toy, ["fifo", "learned", named], seeds=2, workers=1)
    costs = {name: [run.metrics.cost for run in found.runs if run.scheduler == name] for name in found.schedulers}
    assert costs["learned"] == costs[named]
    assert len(costs["learned"]) == 2


def test_options_of_a_trained_agent_follow_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "run (1)"
    folder.mkdir()
    path = folder / "best.npz"
    written(made_up("ServingBurst", "serve", interval_us=250.0), path)
    scheduler = new_scheduler(f"learned:{path}(interval_us=500)")
    assert isinstance(scheduler, LearnedScheduler)
    burst = load_scenario("ServingBurst")
    for source in (f"learned:{folder}", f"learned:{folder}(interval_us=500)"):
        assert learned_file(source) == path
        check_scheduler(source, burst)
    written(made_up("Toy"), tmp_path / "Toy.npz")
    with refused(InputError, "Toy", "every launch"):
        check_scheduler(f"learned:{tmp_path / 'Toy.npz'}(interval_us=500)", load_scenario("Toy"))


@pytest.mark.parametrize("new", [new_dispatcher, new_task_scheduler, new_launch_scheduler])
def test_agents_of_other_games_have_no_options(new: Callable[[str], object]) -> None:
    with refused(InputError, "'interval_us'", "option"):
        new("learned(interval_us=500)")
