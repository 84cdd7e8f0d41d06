"""The environment of a fleet, with its pictures and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.envs.single import SIZE, GameEnv, action_number, check_render_mode, columns_picture, reset_option
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.fleet.co_location import NOW
from gpusched_env.games.fleet.device import Fleet, FleetRun, FleetView, Place
from gpusched_env.games.fleet.environment.encoding import (
    CANDIDATES,
    COLUMNS_NOTE,
    WIDTH,
    FleetFeature,
    encode,
    encode_compiled,
)
from gpusched_env.games.fleet.environment.problems import (
    RANDOM,
    fleet_cost,
    fleet_day,
    fleet_problem,
    reports_without_sharing,
)
from gpusched_env.games.fleet.problem import WAITS, FleetProblem
from gpusched_env.games.fleet.stepping.compiled import advance_compiled
from gpusched_env.games.fleet.windows import advance
from gpusched_env.scheduling.guards import one_thread_at_a_time

JOBS: Final = (200, 200, 200)
GPUS: Final = (0, 114, 178)
WAITING: Final = (230, 159, 0)
Counts = Sequence[tuple[int, int, int]]
"""GPUs in use, jobs on them and jobs waiting, for each report."""


def text(fleet: Fleet, counts: Counts) -> str:
    """A line of the day, one of its GPUs, one for each GPU in use; lines end in newlines."""
    state = fleet.state
    used, running, waiting = counts[-1] if counts else (0, 0, 0)
    lines = [f"{fleet.problem.name}, hour {state.clock[NOW] / 3.6e9:.2f}", f"GPUs {used}   jobs {running} + {waiting}"]
    for gpu in np.flatnonzero(state.count).tolist():
        jobs = state.slots[gpu, : state.count[gpu]]
        trainings = int(state.training[jobs].sum())
        lines.append(
            f"GPU {gpu}: load {state.load[gpu]:.2f}, {state.claimed_gb[gpu]:.0f} of {state.size_gb[gpu]:.0f} GB, "
            f"training {trainings}, inference {len(jobs) - trainings}, sleep {state.sleep_us[gpu] / 1e3:.0f} ms, "
            f"latency over SLO {state.ratio[gpu]:.2f}"
        )
    return "\n".join(lines) + "\n"


def picture(problem: FleetProblem, counts: Counts) -> NDArray[np.uint8]:
    """The day so far, from left to right, uint8 of shape ``(*SIZE, 3)``: blue the GPUs in use, grey behind them the
    jobs on them, orange on top of these those that wait. The height is the most jobs at any time."""
    if not counts:
        return columns_picture(())
    height, width = SIZE
    reports = -(-problem.horizon_us // problem.report_us)
    used, running, waiting = np.array(counts).T
    at = np.arange(width) * reports // width
    scale = (height - 1) / max(1, int((running + waiting).max()))
    tops = np.stack((running + waiting, running, used))[:, np.minimum(at, len(counts) - 1)] * scale
    return columns_picture(zip(np.where(at < len(counts), tops, 0.0), (WAITING, JOBS, GPUS), strict=True))


RenderMode = Literal["rgb_array", "ansi"]
Rows = NDArray[np.float32]
NEW, QUEUE = CANDIDATES, CANDIDATES + 1
"""Actions behind those of the candidate GPUs."""


@dataclass(slots=True)
class FleetDayUnderWay:
    """An episode under way."""

    fleet: Fleet
    alone: float
    """Reports that jobs would take if each had a GPU."""
    view: FleetView | None
    """What there is to see; ``None``: the episode is over."""
    held: set[int] = field(default_factory=set)
    """Jobs that wait until the next report."""
    counts: list[tuple[int, int, int]] = field(default_factory=list)
    """GPUs in use, jobs on them and jobs waiting, for each report."""
    illegal: int = 0
    elapsed_us: int = 0
    """The time that the last step took."""

    @property
    def problem(self) -> FleetProblem:
        return self.fleet.problem

    @property
    def job(self) -> int:
        """The next one to be placed, or ``WAITS``."""
        waiting = () if self.view is None else self.view.waiting.tolist()
        return next((job for job in waiting if job not in self.held), WAITS)

    def run_on(self) -> float:
        """Run to the next report with a decision, or the end; gives what that cost."""
        cost, fleet = 0.0, self.fleet
        begun_us = -1
        while self.view is not None and self.job == WAITS:
            state = fleet.state
            begun_us = self.view.now_us if begun_us < 0 else begun_us
            late_us = state.late_us.sum()
            used, waiting = int(np.count_nonzero(state.count)), len(self.view.waiting)
            self.counts.append((used, int(state.count.sum()), waiting))
            self.view = fleet.advance()
            self.held.clear()
            cost += used + waiting + (state.late_us.sum() - late_us) / self.problem.report_us
        self.elapsed_us = 0 if begun_us < 0 else int(fleet.state.clock[NOW]) - begun_us
        return cost / self.alone

    def finished(self) -> FleetRun:
        """All of it, once it is over; later reports, if all jobs have finished, have none. Before: all so far."""
        reports = -(-self.problem.horizon_us // self.problem.report_us) if self.view is None else len(self.counts)
        counts = np.zeros((3, max(1, reports)), np.int64)
        counts[:, : len(self.counts)] = np.array(self.counts).reshape(-1, 3).T
        return FleetRun(self.problem, self.fleet.state, self.fleet.log, *counts)


class FleetEnv(GameEnv[Rows, FleetDayUnderWay]):
    """Jobs come to a fleet of GPUs; each is put beside others, on an empty GPU, or waits.

    An episode is a day. Every minute GPUs report, and each job that waits is decided on, in order of arrival: training
    and inference that share a GPU slow each other, and training sleeps as much as the SLO of inference needs (GPUColo,
    ICDCS 2024). How long a job will stay is not known.

    ### Action
    `Discrete(10)`: 0 to 7, one of the GPUs in use that have room, the fullest first; 8, an empty GPU; 9, it waits for
    the next report. Which there are is in `info["action_mask"]` (int8) and `action_masks()` (bool); an action that is
    masked out counts as 9.

    ### Observation
    Float32 of shape `(9, columns)`, within 0 to 1: a row for each GPU of the actions 0 to 8, with what it reports and
    what is predicted for it with the job (`gpusched_env.games.fleet.environment.encoding`). It is all zeros at the end.

    ### Reward
    Minus (GPUs in use + inference served later than its SLO + jobs waiting), summed over the reports since the last
    decision, over the reports that all jobs are there for if each has a GPU. The return is exactly minus the cost:
    about -1 without co-location. A job that is late or waits counts as one GPU, as one of its own would have served it.

    ### End
    Terminated at the horizon, or when all jobs have finished.

    ### Info
    `action_mask`, `time_us` (simulated), `elapsed_us` (of this step, for semi-Markov learners), `gpus` (in use) and
    `illegal_actions` (so far); after `reset` also `problem` and `seed`; at the end also `episode_metrics`.

    ### Arguments
    - `problem`: `random`, a day of random size, mix and load for each seed, to train on; `small`, `usual`, `burst` or
      `training`, with jobs that the seed draws; or a file of one's own (.yaml) with fields of
      `gpusched_env.games.fleet.environment.problems.FleetDay`.
    - `control`: of GPUs: `gpucolo-worst` (the inference job that is worst off is held at its SLO), `gpucolo` (their
      mean), `gslice` or `shared` (none).
    - `device`: `compiled` or `reference`.
    - `render_mode`: `rgb_array` or `ansi`.

    ### Version history
    - v0: first release.
    """

    actions = CANDIDATES + 2
    columns = FleetFeature
    columns_note = COLUMNS_NOTE

    def __init__(
        self,
        problem: str = RANDOM,
        *,
        control: str = "gpucolo-worst",
        device: str = "compiled",
        render_mode: RenderMode | None = None,
    ) -> None:
        check_render_mode(render_mode, self.metadata["render_modes"])
        if device not in ("compiled", "reference"):
            raise InputError(f"no device of a fleet is {device!r}; {did_you_mean(device, ('compiled', 'reference'))}")
        fleet_day(problem, 0)
        self.observation_space = spaces.Box(0.0, 1.0, (CANDIDATES + 1, WIDTH), np.float32)
        self.action_space = spaces.Discrete(self.actions)
        self.render_mode = render_mode
        self.problem, self.control, self.device = problem, control, device
        self._rows: Rows = np.zeros((CANDIDATES + 1, WIDTH), np.float32)
        self._gpus = np.full(CANDIDATES + 1, WAITS)

    @one_thread_at_a_time
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Rows, dict[str, Any]]:
        """Start a day, and run to its first job.

        Args:
            seed: of the jobs; ``None``: drawn from ``np_random``.
            options: ``{"problem": name}`` for this episode only.

        Returns:
            the first observation, and ``info`` as the class describes it.

        Raises:
            InputError: unknown options, or no such problem or control.
        """
        name = reset_option(options, "problem", self.problem)
        seed = self._draw_seed(seed)
        problem = fleet_problem(name, seed)
        fleet = Fleet(problem, self.control, advance_compiled if self.device == "compiled" else advance)
        self._run = run = FleetDayUnderWay(fleet, reports_without_sharing(problem), fleet.reset())
        self._before = run.run_on()
        self._look(run)
        return self._rows.copy(), {**self._info(run), "problem": problem.name, "seed": seed}

    @one_thread_at_a_time
    def step(self, action: int | np.integer[Any]) -> tuple[Rows, float, bool, bool, dict[str, Any]]:
        """Place the job and run to the next one, or to the end.

        Returns:
            observation, reward, terminated, truncated, info, as the class describes them.

        Raises:
            ResetNeeded: the episode has not begun or is over.
            InputError: not an action of the space.
        """
        run = self._current()
        if run.view is None:
            raise ResetNeeded("call reset() first: the episode is over")
        number = action_number(action, self.actions)
        if number != QUEUE and self._gpus[number] == WAITS:
            run.illegal += 1
            number = QUEUE
        if number == QUEUE:
            if run.job != WAITS:
                run.held.add(run.job)
        else:
            run.view = run.fleet.apply(Place(run.job, int(self._gpus[number])))
        reward, self._before = -run.run_on() - self._before, 0.0
        self._look(run)
        over = run.view is None
        info = self._info(run) | (self.summary() if over else {})
        return self._rows.copy(), reward, over, False, info

    @one_thread_at_a_time
    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(10,)``."""
        self._current()
        return np.append(self._gpus != WAITS, True)

    @one_thread_at_a_time
    def render(self) -> Any:
        """``ansi``: text, as a string. ``rgb_array``: GPUs in use, late and waiting jobs over time, uint8."""
        run = self._current()
        if not self._draws():
            return None

        return text(run.fleet, run.counts) if self.render_mode == "ansi" else picture(run.problem, run.counts)

    def _look(self, run: FleetDayUnderWay) -> None:
        if run.view is None or run.job == WAITS:
            self._rows[:] = 0.0
            self._gpus[:] = WAITS
        else:
            look = encode_compiled if self.device == "compiled" else encode
            look(run.fleet.state, run.problem.rates, run.job, self._rows, self._gpus)

    def _info(self, run: FleetDayUnderWay) -> dict[str, Any]:
        state = run.fleet.state
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "time_us": float(state.clock[NOW]),
            "elapsed_us": float(run.elapsed_us),
            "gpus": int(np.count_nonzero(state.count)),
            "illegal_actions": run.illegal,
        }

    @one_thread_at_a_time
    def summary(self) -> dict[str, Any]:
        """``episode_metrics`` of the day so far, as ``info`` has them at its end."""
        found = self._current().finished()
        metrics = {
            "cost": fleet_cost(found),
            "gpus": found.gpus,
            "waiting": float(found.waiting.mean()),
            "violations": found.violations,
            "late_requests": found.late_requests,
            "training_stretch": found.training_stretch,
            "energy_j": found.energy_j,
        }
        return {"episode_metrics": metrics}
