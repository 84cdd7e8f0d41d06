"""Whatever is written into what a scheduler or an agent is given, the verdict stays, and that of who plays next."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.devices import make_device
from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.games.child_launches.device import SPAWN
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.scheduler import run_application
from gpusched_env.games.child_launches.workload.launches import Benchmark, BlockShape, ParentKernel, threads_with_loops
from gpusched_env.games.fleet.baselines.packing import Packing
from gpusched_env.games.fleet.device import VIEW_COLUMNS, Fleet, FleetView, Move, Place, run_fleet
from gpusched_env.games.fleet.environment.env import FleetEnv
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import TaskQueueEnv
from gpusched_env.games.task_queues.problem import Form
from gpusched_env.games.task_queues.session import run_tasks_of
from gpusched_env.games.task_queues.suite import random_task_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import (
    Launch,
    Partition,
    Preempt,
    Reject,
    SetBudget,
    SetPartition,
    Synchronise,
    Throttle,
    TilePolicy,
    Wait,
)
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import JobColumn, PendingColumn, View, ViewTable
from tests.attacks.tampering import HUGE, tamper
from tests.devices.cuda.toy_gpu import ToyGpu
from tests.devices.problems import K
from tests.devices.problems import problem as toy_problem
from tests.games.fleet.test_fleet import ASKED, LATER, TRAINED
from tests.games.fleet.test_fleet import problem as fleet_problem
from tests.refusals import refused
from tests.scheduling.reach import reachable

NONSENSE: tuple[Any, ...] = (0.5, "0", None, np.array([1, 2]), np.nan, np.inf, HUGE, 10**400, [1], object())
SOME = 12
"""Views that are written into; later ones are alike."""


class Tampering:
    """A scheduler that decides on copies, and writes into everything that it was given."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._left, self.written = inner, SOME, 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    def see(self, truth: Any, *seed: int) -> None:
        self.written += tamper(truth)

    def reset(self, known: Any, *rng: np.random.Generator) -> Any:
        first = self._inner.reset(pickle.loads(pickle.dumps(known)), *rng)
        self.written += tamper(known)
        return first

    def decide(self, view: Any) -> Any:
        command = copy.deepcopy(self._inner.decide(_copy(view)))
        if self._left:
            self._left -= 1
            self.written += tamper([view, *_read(view)])
        return command


def _read(view: Any) -> list[Any]:
    """All that can be read of it."""
    if isinstance(view, FleetView):
        return [view.shown, *(getattr(view, name) for name in VIEW_COLUMNS)]
    return [view.complete(), view.complete] if hasattr(view, "complete") else []


def _copy(view: Any) -> Any:
    """That does not share anything with ``view``."""
    if isinstance(view, FleetView):
        return FleetView(view._place, view.now_us)
    return pickle.loads(pickle.dumps(view.complete() if hasattr(view, "complete") else view))


def honest_and_tampered(play: Callable[[Any], Any], make: Callable[[], Any], *, clairvoyant: bool = False) -> None:
    """The verdict is the same before, with, and after somebody who writes into everything."""
    honest = play(make())
    cheat = Tampering(make())
    cheat.clairvoyant = clairvoyant
    assert play(cheat) == honest
    assert cheat.written > SOME, "it has something to write into"
    assert play(make()) == honest


class Rejecting(PassThrough):
    """Launches, and gives up a job now and then."""

    def decide(self, view: View) -> Any:
        jobs = view.jobs
        if len(jobs) > 2 and jobs.rejectable[-1]:
            return Reject(int(jobs.tenant[-1]), int(jobs.job[-1]))
        return super().decide(view)


def device_of(name: str) -> Device:
    return RealDevice(ToyGpu()) if name == "stand-in" else make_device(name)


def toy(folder: Path) -> Problem:
    urgent: dict[str, Any] = {"ops": [K(4, 30.0), K(1, 20.0)], "slo_us": 200.0, "priority": 0}
    arrivals = {"kind": "poisson", "rate_per_s": 9_000.0}
    other: dict[str, Any] = {"ops": [K(2, 50.0), K(6, 10.0)], "priority": 1}
    commands = ["launch", "reject"]
    return toy_problem(
        folder, {**urgent, "arrivals": arrivals}, {**other, "arrivals": arrivals}, commands=commands, horizon_us=3_000.0
    )


@pytest.mark.parametrize("clairvoyant", [False, True])
@pytest.mark.parametrize("device", ["compiled", "reference", "stand-in"])
def test_tenants(tmp_path: Path, device: str, clairvoyant: bool) -> None:
    built = toy(tmp_path)

    def play(scheduler: Any) -> Any:
        episode = run_episode(scheduler, built, device_of(device), 3, record="kernels")
        figures = episode.metrics
        tables = (episode.timeline.jobs.array.tobytes(), episode.timeline.kernels.array.tobytes())
        return repr(figures.cost), repr(figures.tenants), episode.decisions, episode.end_us, tables

    honest_and_tampered(play, Rejecting, clairvoyant=clairvoyant)


@pytest.mark.parametrize("compiled", [True, False])
def test_fleets(compiled: bool) -> None:
    built = fleet_problem(ASKED, TRAINED, LATER)

    def play(dispatcher: Any) -> Any:
        run = run_fleet(dispatcher, built, compiled=compiled, asked=True)
        figures = (run.violations, run.late_requests, run.energy_j, run.training_stretch)
        return repr(figures), run.log, [column.tobytes() for column in (*run.state, run.used, run.running, run.waiting)]

    honest_and_tampered(play, Packing)


class Turns:
    """Goes from form to form, and back; what it gave it changes afterwards."""

    def __init__(self) -> None:
        self._given: list[Form] = []

    def reset(self, knowledge: Any, rng: np.random.Generator) -> Form:
        return self._next()

    def decide(self, view: Any) -> Form:
        for form in self._given:
            object.__setattr__(form, "fetch", HUGE)
        return self._next()

    def _next(self) -> Form:
        self._given.append(Form("persistent" if len(self._given) % 2 else "discrete", "block", 64))
        return self._given[-1]


@pytest.mark.parametrize("clairvoyant", [False, True])
@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_task_queues(device: str, clairvoyant: bool) -> None:
    built = random_task_problem(33)

    def play(scheduler: Any) -> Any:
        run = run_tasks_of(scheduler, built, make_task_device(device))
        return run.time_ps, run.totals.item()

    honest_and_tampered(play, Turns, clairvoyant=clairvoyant)


class Spawns:
    """Launches every child."""

    def reset(self, knowledge: Any, rng: np.random.Generator) -> None:
        pass

    def decide(self, view: Any) -> Any:
        return SPAWN


def launches(light: int = 10) -> LaunchProblem:
    """Lanes with ``light`` iterations each, but two with 4,000."""
    work = np.full(64, light)
    work[[5, 40]] = 4000
    kernel = ParentKernel("parent", BlockShape(32, 32), BlockShape(64, 32), threads_with_loops(work))
    return launch_problem(Benchmark("SA-toy", (kernel,), threshold=5))


@pytest.mark.parametrize("clairvoyant", [False, True])
@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_child_launches(device: str, clairvoyant: bool) -> None:
    built = launches()

    def play(scheduler: Any) -> Any:
        run = run_application(scheduler, built, make_launch_device(device))
        return run.time_ps, run.cycles, run.totals.item(), run.launches.tobytes()

    honest_and_tampered(play, Spawns, clairvoyant=clairvoyant)


def test_a_program_is_declared_and_not_made_by_its_scheduler() -> None:
    class Easier(Spawns):
        launches = None

        def adapt(self, problem: LaunchProblem) -> LaunchProblem:
            return launches(light=1)

        def see(self, problem: LaunchProblem) -> None:
            raise AssertionError("it is not clairvoyant")

    built = launches()
    runs = [run_application(made, built, make_launch_device("compiled")) for made in (Spawns(), Easier())]
    assert runs[0].time_ps == runs[1].time_ps


ENVIRONMENTS: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
    "compiled": lambda: gymnasium.make("gpusched/Toy-v0"),
    "reference": lambda: gymnasium.make("gpusched/Toy-v0", device="reference"),
    "fleet": lambda: FleetEnv("small"),
    "task-queues": lambda: TaskQueueEnv(),
    "child-launches": lambda: gymnasium.make("gpusched/DynamicParallelism-v0"),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_agents(name: str) -> None:
    def play(writes: bool) -> list[Any]:
        env: Any = ENVIRONMENTS[name]()
        rewards: list[Any] = []
        given = env.reset(seed=4)
        for step in range(60):
            legal = np.flatnonzero(given[-1]["action_mask"])
            action = int(legal[step % len(legal)])
            masks = env.unwrapped.action_masks()
            if writes:
                assert tamper([*given[:1], given[-1], masks]) > 2
            given = env.step(action)
            rewards.append((given[1:4], given[-1].get("episode_metrics")))
            if given[2] or given[3]:
                break
        return rewards

    assert repr(play(writes=True)) == repr(play(writes=False))


@pytest.mark.parametrize("kept", [True, False])
def test_vectors_of_agents(kept: bool) -> None:
    def play(writes: bool) -> list[Any]:
        env = GpuSchedulingVectorEnv("ThreeTenants", num_envs=3, copy=kept, horizon_us=3_000.0)
        rewards: list[Any] = []
        observations, infos = env.reset(seed=4)
        for step in range(60):
            actions = np.array([np.flatnonzero(mask)[step % mask.sum()] for mask in infos["action_mask"]])
            masks = env.action_masks()
            if writes:
                assert tamper([observations, infos, masks]) > 2
            observations, *given, infos = env.step(actions)
            rewards.append([values.tolist() for values in given])
        env.close()
        return rewards

    assert play(writes=True) == play(writes=False)


# ---- forged ids and commands ---------------------------------------------------------------------------------------


def forged(table: ViewTable, columns: Any, **values: float) -> ViewTable:
    array = np.zeros((1, len(columns)))
    for name, value in values.items():
        array[0, columns[name.upper()]] = value
    return ViewTable(array, columns)


@pytest.mark.parametrize("device", ["compiled", "reference", "stand-in"])
def test_ids_are_the_device_s_and_not_the_view_s(tmp_path: Path, device: str) -> None:
    made = device_of(device)
    view = made.reset(toy(tmp_path), 3)
    assert view is not None
    for array in (view.pending.array, view.pending.array.base):
        if isinstance(array, np.ndarray):
            with refused(ValueError, "WRITEABLE"):
                array.flags.writeable = True
    view.__dict__["pending"] = forged(view.pending, PendingColumn, id=HUGE, launchable=1.0, synchronisable=1.0)
    view.jobs.array = forged(view.jobs, JobColumn, job=HUGE, rejectable=1.0).array
    with refused(IllegalCommand, HUGE, "launchable"):
        made.apply(Launch(HUGE))
    with refused(IllegalCommand, HUGE, "tenant 0", "job"):
        made.apply(Reject(0, HUGE))
    view.__dict__["time_us"] = -2.0
    with refused(IllegalCommand, "present"):
        made.apply(Wait(-1.0))


class Alike(int):
    """Equal to every number."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Changing(Launch):
    """Another launch each time it is asked."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        return next(NUMBERS) if name == "launch" else super().__getattribute__(name)


NUMBERS = itertools.cycle((0, HUGE))


@pytest.mark.parametrize("device", ["compiled", "reference", "stand-in"])
def test_a_command_is_what_was_checked(tmp_path: Path, device: str) -> None:
    made = device_of(device)
    made.reset(toy(tmp_path), 3)
    with refused(IllegalCommand, HUGE, "launchable"):
        made.apply(Launch(Alike(HUGE)))
    with refused(IllegalCommand, "command"):
        made.apply(Changing(0))


@pytest.mark.parametrize("device", ["compiled", "reference"])
@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: type(value).__name__)
def test_nonsense_is_refused_in_a_sentence(tmp_path: Path, device: str, value: Any) -> None:
    made = device_of(device)
    made.reset(toy(tmp_path), 3)
    policy = TilePolicy(value, value, value, value)
    for command in (
        Launch(value), Launch(0, Alike(HUGE), value, value), Launch(0, partition=Partition(value, value)),
        Preempt(value, value, value), SetPartition(value, Partition(0, value)), Reject(value, value), Reject(0, value),
        Synchronise(value, policy, value, value), Synchronise(0, policy), Throttle(value, value),
        SetBudget(value, value, value), value,
    ):  # fmt: skip
        with pytest.raises(IllegalCommand, match=r"\A.+\Z"):
            made.apply(command)
    if not isinstance(value, float | int):
        with pytest.raises(IllegalCommand, match=r"\A.+\Z"):
            made.apply(Wait(value))


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: type(value).__name__)
def test_nonsense_is_refused_in_a_sentence_in_the_other_games(value: Any) -> None:
    fleet = Fleet(fleet_problem(ASKED, TRAINED))
    fleet.reset()
    fleet.apply(Place(0, 0))
    for command in (Place(value, value), Place(1, value), Move(value, value), Move(0, value), value):
        with pytest.raises(IllegalCommand, match=r"\A.+\Z"):
            fleet.apply(command)
    for name in ("strategy", "worker", "fetch", "threshold", "delta", "grid", "polls"):
        fields: dict[str, Any] = {name: value}
        if (value is None and name in ("grid", "polls")) or (value is HUGE and name in ("delta", "grid", "polls")):
            continue
        with pytest.raises(InputError, match=r"\A.+\Z"):
            Form(**fields)


def test_nothing_of_later_jobs_is_in_a_fleet_s_view() -> None:
    fleet = Fleet(fleet_problem(ASKED, TRAINED, LATER))
    view = fleet.reset()
    later = {float(LATER[2]), float(ASKED[2])}
    assert len(view.jobs) == 2
    found = {float(value) for _, value in reachable(view) if isinstance(value, int | float | np.number)}
    assert 500_000.0 in found, "what is known is there"
    assert not later & found
