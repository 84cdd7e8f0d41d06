"""A fleet in shards is the fleet in one piece, to the last bit."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.baselines.registry import make_dispatcher
from gpusched_env.games.fleet.co_location import shipped_rates
from gpusched_env.games.fleet.device import WAIT, Command, FleetRun, FleetView, Move, Place, run_fleet
from gpusched_env.games.fleet.experiments.levels import Shard, run_in_shards
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import DAY_US, FleetTrace
from tests.refusals import refused

COLUMNS = ("gpu_of", "left_us", "ended_us", "served_us", "ratio_us", "late_us", "slots", "count", "sleep_us", "share")


def a_day() -> FleetProblem:
    jobs = FleetTrace(days=1.0, scale=0.01).draw(3)
    return FleetProblem("a day", jobs, (GpuKind("V100M32", 24, 32.0),), shipped_rates(), DAY_US // 4)


def same(one: FleetRun, other: FleetRun) -> None:
    np.testing.assert_array_equal(one.used, other.used)
    np.testing.assert_array_equal(one.running, other.running)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name), err_msg=name)


class Shuffling:
    """Places jobs in turn, and moves one that runs at every fifth report, wherever there is room."""

    control = "gpucolo"

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        self._rng = np.random.default_rng(0)
        self._moved_us = -1

    def decide(self, view: FleetView) -> Command:
        free_gb = view.size_gb - view.claimed_gb
        memory_gb = view.jobs["memory_gb"]
        for job in view.waiting[:1].tolist():
            room = np.flatnonzero(free_gb >= memory_gb[job])
            if len(room):
                return Place(job, int(self._rng.choice(room)))
        on = np.flatnonzero(view.gpu_of >= 0)
        if view.now_us % 300_000_000 == 0 and self._moved_us != view.now_us and len(on):
            self._moved_us = view.now_us
            job = int(self._rng.choice(on))
            room = np.flatnonzero((free_gb >= memory_gb[job]) & (np.arange(len(free_gb)) != view.gpu_of[job]))
            if len(room):
                return Move(job, int(self._rng.choice(room)))
        return WAIT


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_change_nothing(shards: int) -> None:
    problem = a_day()
    whole = run_fleet(make_dispatcher("gpucolo"), problem)
    parts = run_in_shards(make_dispatcher("gpucolo"), problem, shards)
    same(whole, parts)
    assert (whole.violations, whole.late_requests) == (parts.violations, parts.late_requests)
    assert whole.used.max() > 5


def test_jobs_move_from_shard_to_shard() -> None:
    whole, parts = run_fleet(Shuffling(), a_day()), run_in_shards(Shuffling(), a_day(), 4)
    same(whole, parts)
    assert whole.log == parts.log
    moves = [event for event in whole.log if event.what == "move"]
    assert len(moves) > 50


def test_an_address_where_nobody_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether nobody is there, or somebody who says nothing, or something else."""
    pytest.importorskip("ray")
    from gpusched_env.experiments.lib import ray_cluster

    monkeypatch.setattr(ray_cluster, "ANSWERS_S", 0.2)
    monkeypatch.setattr(ray_cluster.ray, "init", lambda **_: pytest.fail("it is not to be asked"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}", "127.0.0.1:1", "127.0.0.1:99999"):
            with refused(InputError, address, "--ray-address", "cluster"):
                ray_cluster.connected(address).__enter__()


def test_there_is_a_shard_for_each_gpu_at_most() -> None:
    with refused(InputError, "25 shards", "24 GPUs", "least 1"):
        run_in_shards(make_dispatcher("gpucolo"), a_day(), 25)


@pytest.mark.long
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_actors_of_ray_change_nothing(shards: int) -> None:
    pytest.importorskip("ray")
    problem = a_day()
    same(run_fleet(Shuffling(), problem), run_in_shards(Shuffling(), problem, shards, "local"))


class Dying(Shard):
    """Ends its process at the third window."""

    def window(self, *args: object) -> object:  # type: ignore[override]
        import os

        self.windows = getattr(self, "windows", 0) + 1
        if self.windows == 3:
            os._exit(1)
        return super().window(*args)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_lost_actor_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from gpusched_env.errors import GpuschedError
    from gpusched_env.games.fleet.experiments import levels as cluster

    monkeypatch.setattr(cluster, "Shard", Dying)
    with refused(GpuschedError, "shard 1 of 2", "GPUs 0 to 11"):
        run_in_shards(make_dispatcher("gpucolo"), a_day(), 2, "local")
