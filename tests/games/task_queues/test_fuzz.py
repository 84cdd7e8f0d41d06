"""Fuzzing of task queues finds faults, makes them small, plays them again, and raises no false alarm."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.fuzz.run import counterexample, fuzz, replay
from gpusched_env.experiments.fuzz.stored import read_counterexample, write_counterexample
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.devices.hosting import DirectedLink, Message, Sent
from gpusched_env.games.task_queues.devices.parts import TaskWorker
from gpusched_env.games.task_queues.devices.reference import ReferenceTaskDevice
from gpusched_env.games.task_queues.experiments.fuzzing import TASKS, TaskCounterexample, draw_tasks
from gpusched_env.games.task_queues.hardware.machine import StepPrices
from tests.refusals import refused


class CountsOneMore(ReferenceTaskDevice):
    """Says that one more was put back when the form changes: that takes longer."""

    def _put_tasks_back(self) -> int:
        return super()._put_tasks_back() + 1


class PollsLate(ReferenceTaskDevice):
    """A picosecond."""

    @property
    def _prices(self) -> StepPrices:
        return super()._prices._replace(poll_ps=super()._prices.poll_ps + 1)


class ForgetsWhatIsOnTheWay(ReferenceTaskDevice):
    """To other GPUs: its workers may leave before it has arrived."""

    def _send(self, worker: TaskWorker, away: dict[int, list[Sent]]) -> tuple[list[Message], int]:
        found = super()._send(worker, away)
        self._sums["flying"] = 0
        return found

    def _announce(self, link: DirectedLink) -> None:
        self._sums["flying"] = len(link.landed[0].sent)
        super()._announce(link)


def test_the_devices_do_not_differ_and_everything_happens() -> None:
    tally = fuzz("compiled", fuzzing=TASKS, episodes=150)
    assert tally.differences == {}
    assert tally.counts["tasks"] > 5000
    assert {
        "bfs", "pagerank", "colouring", "persistent", "discrete", "bulk-synchronous", "workers: blocks",
        "workers: warps",
        "two queues", "idle workers", "votes", "another form", "tasks put back", "late publishers", "overflow",
        "impossible vote", "early end", "launched again if left early", "right results", "2 GPUs", "3 GPUs", "4 GPUs",
        "push", "aggregation", "tasks sent", "sent tasks that come too late", "whole batches",
        "change while tasks are on the way",
    } <= set(tally.features)  # fmt: skip


@pytest.mark.parametrize("device", [CountsOneMore, PollsLate, ForgetsWhatIsOnTheWay])
def test_faults_are_found(device: type[ReferenceTaskDevice]) -> None:
    tally = fuzz(device, fuzzing=TASKS, episodes=40, enough=1)
    assert tally.differences


def test_a_counterexample_is_small_and_plays_again(tmp_path: Path) -> None:
    tally = fuzz(PollsLate, fuzzing=TASKS, episodes=40, enough=1)
    [episode] = tally.differences
    example = counterexample(tally, episode, fuzzing=TASKS, seconds=10)
    assert len(example.case.edges) <= len(draw_tasks(0, episode).edges)
    write_counterexample(example, tmp_path / "example.json")
    stored = read_counterexample(tmp_path / "example.json", TaskCounterexample)
    assert stored == example
    assert replay(stored, PollsLate, "reference", fuzzing=TASKS) == example.difference
    assert replay(stored, "compiled", "reference", fuzzing=TASKS) is None


def test_the_command(tmp_path: Path) -> None:
    options = ["--episodes", "3", "--workers", "1", "--out", str(tmp_path / "found")]
    result = CliRunner().invoke(app, ["lab", "fuzz", "--tasks", *options])
    assert result.exit_code == 0
    assert "3 episodes, no difference" in result.output
    assert CliRunner().invoke(app, ["lab", "fuzz", "--tasks", "--launches", *options]).exit_code != 0


def test_unknown_devices_are_refused() -> None:
    with refused(InputError, "'compield'", "did you mean"):
        make_task_device("compield")
