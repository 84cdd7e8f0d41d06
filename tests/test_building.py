"""While compiled code is built in the background, everything answers, and answers the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import gpusched_env
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import either
from gpusched_env.devices.either import EitherDevice, compiled_device
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.envs import drivers
from gpusched_env.envs.drivers import DeviceDriver
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import Command, Wait
from gpusched_env.scheduling.view import View

ROOT = Path(gpusched_env.__file__).parents[1]
QUICK: list[tuple[str, int, dict[str, Any]]] = [("Toy", 50, {}), ("InferenceBesideTraining", 20, {})]
OTHERS = [
    ("PriorityFill", 30, {"commands": ["launch", "preempt", "partition", "reject"]}),
    ("DependentKernels", 30, {}),
    ("ServingColocated", 1, {}),
    ("SharedMemory", 2, {}),
    ("ServingPoisson", 1, {}),
]
PLAY = """
import gymnasium, numpy as np, sys
import gpusched_env

def digits(value):
    if isinstance(value, dict):
        return {key: digits(each) for key, each in sorted(value.items())}
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes().hex()
    return type(value).__name__, repr(value)

for name, steps, options in CASES:
    env = gymnasium.make(f"gpusched/{name}-v0", **options)
    rng = np.random.default_rng(3)
    observation, info = env.reset(seed=5)
    print(name, digits(observation), digits(info))
    for _ in range(steps):
        legal = np.flatnonzero(info["action_mask"])
        *seen, info = env.step(rng.choice(legal) if rng.random() < 0.9 else rng.integers(env.action_space.n))
        print([digits(each) for each in seen], digits(info))
        if seen[2] or seen[3]:
            break
    print(digits(env.unwrapped.summary()))
"""


def run(script: str, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a process says."""
    cache = {} if folder is None else {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT), **cache, **variables},
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty cache."""
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.mark.parametrize("cases", [QUICK, pytest.param(OTHERS, marks=pytest.mark.long)])
def test_without_compiled_code_all_digits_are_the_same(cases: list[tuple[str, int, Any]], folder: Path) -> None:
    """Of observations, masks, rewards, infos and metrics; and nothing is compiled."""
    play = PLAY.replace("CASES", repr(cases))
    plain, compiled = run(play, folder, GPUSCHED_COMPILE="off"), run(play, GPUSCHED_COMPILE="wait")
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr == ""
    assert len(plain.stdout.splitlines()) > 30
    assert plain.stdout == compiled.stdout
    assert not list(folder.rglob("*.nbc"))


def test_a_word_that_is_none_of_three_is_an_error() -> None:
    said = run("import gymnasium, gpusched_env; gymnasium.make('gpusched/Toy-v0')", GPUSCHED_COMPILE="of").stderr
    assert "GPUSCHED_COMPILE is 'of'; did you mean 'off'?" in said


def test_what_needs_compiled_code_says_so(folder: Path) -> None:
    script = "from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv as V; V('Toy', num_envs=2)"
    said = run(script, folder, GPUSCHED_COMPILE="off").stderr
    assert "GPUSCHED_COMPILE is 'off', and this needs compiled code" in said


AWAIT = """
import time
from gpusched_env.building import build_of
build = build_of("tests.small_units:{units}")
asked = 0
while not build.is_ready() and not build.failed:
    asked += 1
    time.sleep(0.05)
print(asked > 0, build.failed)
"""


def test_a_build_in_the_background_ends_and_says_so(folder: Path) -> None:
    done = run(AWAIT.format(units="UNITS"), folder, GPUSCHED_COMPILE="background")
    assert done.stdout == "True False\n", done.stderr
    first, *_, last = done.stderr.splitlines()
    assert "built in the background: 0 of 1 parts, 0 s" in first
    assert "is built (" in last
    assert [path.suffix for path in folder.rglob("*small_units*") if path.suffix != ".lock"] == [".nbc"]
    assert run(AWAIT.format(units="UNITS"), folder, GPUSCHED_COMPILE="background").stdout == "False False\n"


def test_a_build_that_fails_is_said(folder: Path) -> None:
    done = run(AWAIT.format(units="BROKEN"), folder, GPUSCHED_COMPILE="background")
    assert done.stdout == "True True\n", done.stderr
    assert "could not be built; the reference device goes on: " in done.stderr
    assert "unknown" in done.stderr.splitlines()[-1]


def test_whoever_wants_to_wait_waits(folder: Path) -> None:
    done = run(AWAIT.format(units="UNITS"), folder, GPUSCHED_COMPILE="wait")
    assert done.stdout == "False False\n", done.stderr


def test_a_process_that_ends_first_leaves_the_build_to_itself(folder: Path) -> None:
    """It neither waits for it nor breaks it."""
    script = "from gpusched_env.building import build_of; print(build_of('tests.small_units:UNITS').is_ready())"
    assert run(script, folder, GPUSCHED_COMPILE="background").stdout == "False\n"
    assert run(script, folder, GPUSCHED_COMPILE="wait").stdout == "True\n"
    assert not list(folder.rglob("*.tmp.*"))


class Ready:
    """A build that is ready at the n-th question."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def is_ready(self) -> bool:
        self.left -= 1
        return self.left <= 0

    def wait(self) -> None:
        """Nothing is waited for."""


class Partly:
    """A scheduler that notes what plays."""

    def __init__(self, device: EitherDevice) -> None:
        self.device = device
        self.inner = make_scheduler("fifo")
        self.played: list[bool] = []

    def reset(self, knowledge: Any, rng: np.random.Generator) -> None:
        self.inner.reset(knowledge, rng)

    def decide(self, view: View) -> Command:
        self.played.append(isinstance(self.device._now, ReferenceDevice))
        return self.inner.decide(view)


def test_a_device_takes_over_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = build_problem(load_scenario("InferenceBesideTraining", horizon_us=3_000.0))
    whole = run_episode(make_scheduler("fifo"), problem, compiled_device(), 0, record="kernels")
    ready = Ready(20)
    monkeypatch.setattr(either, "is_compiled_ready", ready.is_ready)
    device = EitherDevice()
    partly = Partly(device)
    episode = run_episode(partly, problem, device, 0, record="kernels")
    assert partly.played[0]
    assert not partly.played[-1]
    assert episode.metrics.cost == whole.metrics.cost
    assert np.array_equal(episode.timeline.kernels.array, whole.timeline.kernels.array, equal_nan=True)


def test_snapshots_are_played_on_by_what_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(either, "is_compiled_ready", Ready(2).is_ready)
    problem, device = build_problem(load_scenario("Toy")), EitherDevice()
    view = device.reset(problem, 0, snapshots=True)
    assert view is not None
    pending = view.pending.array
    plain = device.snapshot()
    device.reset(problem, 0, snapshots=True)
    fast = device.snapshot()
    for snapshot in (plain, fast, plain):
        found = device.restore(snapshot)
        assert found is not None
        assert np.array_equal(found.pending.array, pending)
        device.apply(Wait(1.0))


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Ready:
    """Compiled environments are there at the 10th question."""
    ready = Ready(10)
    monkeypatch.setattr(drivers, "build_of", lambda *places: ready)
    return ready


def test_an_environment_goes_on_in_the_middle_of_an_episode(late: Ready) -> None:
    env = gymnasium.make("gpusched/InferenceBesideTraining-v0").unwrapped
    _, info = env.reset(seed=5)
    saved = env.save_state()  # type: ignore[attr-defined]
    played = []
    for again in range(2):
        seen = []
        for _ in range(20):
            observation, *step, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
            seen.append((*step, info["time_us"], observation["pending"].tobytes()))
        played.append(seen)
        assert not isinstance(env._driver, DeviceDriver) or again  # type: ignore[attr-defined]
        _, info = env.restore_state(saved)  # type: ignore[attr-defined]
        assert isinstance(env._driver, DeviceDriver), "the state is the reference device's"  # type: ignore[attr-defined]
    assert played[0] == played[1]
