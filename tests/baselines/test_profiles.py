"""The measurement stage, and schedulers that are told something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.devices import make_device
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.papers.fikit.runs import measure_profiles
from gpusched_env.scenarios.adapting import with_profile_error
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import OpKind
from tests.devices.problems import SYNC, Copy, K, problem


def test_measured_profiles_are_the_given_ones_where_nothing_varies(tmp_path: Path) -> None:
    """Each tenant alone, though here both would compete; the last kernel of a job has no gap after it."""
    program = [K(4, 10.0), K(4, 30.0, host_us=60.0), K(2, 5.0)]
    built = problem(
        tmp_path, {"ops": program, "arrivals": {"kind": "poisson", "rate_per_s": 1.0}}, {"ops": [K(4, 7.0)]}
    )
    given, measured = built.told, measure_profiles(built, CompiledDevice(), runs=3)
    assert given.duration_us.tolist() == [10.0, 30.0, 5.0, 7.0]
    assert given.gap_us.tolist() == [50.0, 0.0, 0.0, 0.0]
    assert measured.duration_us == pytest.approx(given.duration_us)
    assert measured.gap_us == pytest.approx([50.0, 0.0, np.nan, np.nan], nan_ok=True)


def test_a_gap_reaches_to_the_next_kernel_over_copies_and_waits(tmp_path: Path) -> None:
    """A copy of 8 us and a synchronisation before the host's 20 us: the SMs are idle for 28."""
    program = [K(4, 10.0), Copy(OpKind.COPY_TO_HOST, 8.0), SYNC, K(4, 5.0, host_us=20.0)]
    built = problem(tmp_path, {"ops": program})
    assert built.gaps_us.tolist() == [28.0, 0.0]
    assert measure_profiles(built, CompiledDevice(), runs=1).gap_us[0] == pytest.approx(28.0)


class Witness:
    """Notes what it is told, and launches what it can."""

    set_up = SetUp(interception_us=0.5)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        self.told = [kernel.duration_us for kernel in knowledge.kernels], knowledge.gap_us.tolist()
        self.pending: list[tuple[float, float, float]] = []
        self.running: list[float] = []

    def decide(self, view: View) -> Command:
        self.running += view.running.profiled_us.tolist()
        for row in range(len(view.pending)):
            kernel = view.pending
            self.pending.append((kernel.profiled_us[row], kernel.profiled_gap_us[row], kernel.job_left_us[row]))
            return Launch(int(kernel.id[row]))
        return WAIT


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_the_scheduler_sees_wrong_profiles_and_the_device_runs_the_right_ones(tmp_path: Path, device: str) -> None:
    built = problem(tmp_path, {"ops": [K(4, 10.0), K(4, 30.0, host_us=15.0)]}, {"ops": [K(4, 7.0, host_us=5.0)]})
    witness = Witness()
    told = with_profile_error(built, ProfileError(durations=3.0, gaps=2.0))
    episode = run_episode(witness, told, make_device(device), 0, record="kernels")
    assert witness.told == ([30.0, 90.0, 21.0], [10.0, 0.0, 0.0])
    assert witness.pending == [(30.0, 10.0, 40.0), (21.0, 0.0, 7.0), (90.0, 0.0, 30.0)]
    assert witness.running == [30.0, 21.0]
    spans = episode.timeline.kernels.column("ended_us") - episode.timeline.kernels.column("started_us")
    assert spans == pytest.approx([10.0, 7.0, 30.0])
    assert episode.problem.scenario.decision_us == 0.5, "what the scheduler asks of the session stays"
    assert [kernel.duration_us for kernel in built.kernels] == [10.0, 30.0, 7.0]
