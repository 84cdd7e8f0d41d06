"""What FIKIT loses when its profiles are wrong or missing, and what its threshold does.

On the recordings as they are, where gaps are filled most: services without a pause, of which the low-priority one
lives on the gaps alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from gpusched_env.baselines.profiles import measure_profiles
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.reproduce.fikit.setting import CONTINUOUS, RECORDED_ON, UNDER_MPS, Cell, problem_of
from gpusched_env.experiments.reproduce.fikit.simulate import SEED, Outcome, outcome
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.scenario import Contexts
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.session import run_episode

PAIRS = (("RetinaNet", "FCN-50"), ("FCOS", "ResNet-50"), ("Faster R-CNN", "FCN-101"), ("ResNet-101", "ResNet-50"))
"""High and low priority, chosen for gaps in the first and launches that fit into them in the second."""
RIGHT = "right profiles"


def fikit() -> Scheduler:
    """FIKIT as in :data:`~gpusched_env.experiments.reproduce.fikit.setting.UNDER_MPS`."""
    name, options = CONTINUOUS[UNDER_MPS]
    return make_scheduler(name, **options)


MEASURED, RUNS = "measured in 3 runs", 3
CASES: dict[str, ProfileError] = {
    RIGHT: ProfileError(),
    MEASURED: ProfileError(),
    "durations doubled": ProfileError(durations=2.0),
    "durations halved": ProfileError(durations=0.5),
    "gaps doubled": ProfileError(gaps=2.0),
    "gaps halved": ProfileError(gaps=0.5),
    "each off by up to 2": ProfileError(scatter=2.0),
    "a tenth never measured": ProfileError(forget=0.1),
    "nothing measured": ProfileError(forget=1.0),
}
"""What is wrong with the profiles that FIKIT is told."""


EPSILONS_US = (20.0, 50.0, 100.0, 200.0)
SWEEP: dict[tuple[Contexts, float], str] = {
    (contexts, epsilon_us): f"{contexts}, threshold {epsilon_us:g} us"
    for contexts in ("shared", "per-tenant")
    for epsilon_us in EPSILONS_US
}
"""Names of further cases, with right profiles: services under MPS or as processes, and thresholds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run."""

    high: str
    low: str
    case: str
    """Of :data:`CASES` or :data:`SWEEP`."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a case costs, averaged over the pairs."""

    case: str
    high: float
    """Completion time of the high-priority service over that with the right profiles."""
    low: float
    """Work done in its gaps over that with the right profiles."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold's effect, averaged over the pairs; values under MPS and as processes."""

    epsilon_us: float
    high: tuple[float, float]
    """Completion time of the high-priority service over that alone."""
    low: tuple[float, float]
    """Work done in its gaps: profiled device time over the length of the run."""


TRIALS = [Trial(high, low, case) for high, low in PAIRS for case in (*CASES, *SWEEP.values())]


@dataclass(frozen=True, slots=True)
class RunTrial:
    """The task of worker processes."""

    device: str

    def __call__(self, trial: Trial) -> Outcome:
        problem = problem_of(Cell(RECORDED_ON, trial.high, trial.low, UNDER_MPS))
        device = new_device(self.device)
        if trial.case == MEASURED:
            problem = problem.with_profiles(measure_profiles(problem, device, RUNS))
        elif trial.case in CASES:
            problem = problem.with_profile_error(CASES[trial.case])
        return outcome(run_episode(_scheduler_of(trial.case), problem, device, SEED, record="kernels"))


def losses(outcomes: Mapping[Trial, Outcome]) -> list[Loss]:
    """Every case against the right profiles."""
    found = []
    for case in CASES:
        high, low = [], []
        for pair in {(trial.high, trial.low) for trial in outcomes}:
            wrong, right = outcomes[Trial(*pair, case)], outcomes[Trial(*pair, RIGHT)]
            high.append(wrong.high_us / right.high_us)
            low.append(wrong.low_share / right.low_share)
        found.append(Loss(case, statistics.fmean(high), statistics.fmean(low)))
    return found


def thresholds(outcomes: Mapping[Trial, Outcome], alone_us: Mapping[str, float]) -> list[Threshold]:
    """Every threshold; ``alone_us``: completion times of the high-priority services alone, by network."""
    found = []
    for epsilon_us in EPSILONS_US:
        high, low = [], []
        for contexts in ("shared", "per-tenant"):
            name = SWEEP[contexts, epsilon_us]
            own = [(trial.high, outcome) for trial, outcome in outcomes.items() if trial.case == name]
            high.append(statistics.fmean(outcome.high_us / alone_us[network] for network, outcome in own))
            low.append(statistics.fmean(outcome.low_share for _, outcome in own))
        found.append(Threshold(epsilon_us, (high[0], high[1]), (low[0], low[1])))
    return found


def _scheduler_of(case: str) -> Scheduler:
    for (contexts, epsilon_us), name in SWEEP.items():
        if name == case:
            return make_scheduler("fikit", contexts=contexts, epsilon_us=epsilon_us)
    return fikit()
