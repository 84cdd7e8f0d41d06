"""The environment of dynamic parallelism, with its pictures and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.envs.single import SIZE, GameEnv, action_number, check_render_mode, columns_picture, reset_option
from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.environment.requests import (
    COLUMNS_NOTE,
    RANDOM,
    WIDTH,
    LaunchFeature,
    Singles,
    check_benchmark,
    episode_problem,
    make_application,
)
from gpusched_env.games.child_launches.hardware.warp_machine import SPAWN_KEPLER, WarpMachine
from gpusched_env.games.child_launches.problem import LaunchProblem, Transformations, check_program
from gpusched_env.scheduling.guards import one_thread_at_a_time

WAITING: Final = (230, 159, 0)
RUNNING: Final = (0, 114, 178)


def text(problem: LaunchProblem, device: LaunchDevice) -> str:
    """A line of the application, one of its children, one of the GPU; lines end in newlines."""
    launches, totals = device.launches, device.totals
    children = launches[launches["parent"] >= 0]
    queued = int((children["queued_ps"] < 0).sum())
    running = int(((children["started_ps"] >= 0) & (children["ended_ps"] < 0)).sum())
    ended = int((children["ended_ps"] >= 0).sum())
    kernels = int((launches["parent"] < 0).sum())
    return (
        f"{problem.name} on {problem.machine.gpu.name}   {device.time_ps / 1e6:,.1f} us   "
        f"kernel {kernels} of {len(problem.tables.kernels)}\n"
        f"requests {int(totals['decisions']):,}   launched {len(children):,}: {queued:,} without a hardware queue, "
        f"{running:,} running, {ended:,} ended\n"
        f"{int(totals['resident_blocks']):,} blocks on SMs\n"
    )


def picture(problem: LaunchProblem, device: LaunchDevice) -> NDArray[np.uint8]:
    """Children over time, from 0 to now: blue with blocks on SMs, orange above them before that; uint8, of shape
    ``(*SIZE, 3)``. The height is the most at any time."""
    height, width = SIZE
    now_ps = max(1, device.time_ps)
    children = device.launches
    children = children[children["parent"] >= 0]
    started = np.where(children["started_ps"] < 0, now_ps + 1, children["started_ps"])
    ended = np.where(children["ended_ps"] < 0, now_ps + 1, children["ended_ps"])
    instants = np.linspace(0, now_ps, width)
    waiting = _between(children["created_ps"], started, instants)
    running = _between(started, ended, instants)
    scale = (height - 1) / max(1, int((waiting + running).max(initial=0)))
    return columns_picture((((waiting + running) * scale, WAITING), (running * scale, RUNNING)))


def _between(begin: NDArray[np.int64], end: NDArray[np.int64], instants: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many have begun and not ended at each instant."""
    begun = np.searchsorted(np.sort(begin), instants, side="right")
    return np.asarray(begun - np.searchsorted(np.sort(end), instants, side="right"))


RenderMode = Literal["rgb_array", "ansi"]


def observation_space() -> gymnasium.Space[Any]:
    """Bounds of the columns, float32 of shape ``(WIDTH,)``."""
    low, high = ([getattr(column, bound) for column in LaunchFeature] for bound in ("low", "high"))
    return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


@dataclass(slots=True)
class ApplicationEpisode:
    """An episode under way."""

    name: str
    seed: int
    problem: LaunchProblem
    flat_ps: int
    time_ps: int = 0
    """The time up to which rewards have been given."""
    elapsed_ps: int = 0
    """The time that the last step took."""
    over: bool = False


class DynamicParallelismEnv(GameEnv[Singles, ApplicationEpisode]):
    """Threads of an application ask whether to launch a child kernel or do the work themselves.

    An episode is an application on an input, from its start to its end: level by level of a search, round by round of
    a colouring. Lanes of a warp that come to a loop of more iterations than the program's threshold ask one after
    another, at one instant; each answer is a decision. SPAWN (Tang et al., HPCA 2017) is a controller for this.

    ### Action
    `Discrete(2)`: 0, the thread does the work itself; 1, it launches a child. Launches cost the warp time, wait for
    one of the hardware queues, and then for room on the SMs; what a lane does itself makes its whole warp wait. Where
    a launch fails because the pool of pending launches is full, `info["action_mask"]` (int8) and `action_masks()`
    (bool) say so, and a launch counts as 0.

    ### Observation
    A vector of float32 columns within -1 to 1 (`gpusched_env.games.child_launches.environment.requests`): the request,
    what SPAWN's hardware counts, the queues of the GPU, the costs of a launch. It is all zeros at the end.

    ### Reward
    Minus the time since the last decision, over the time that the application takes if it launches nothing. The return
    is exactly minus the episode's time over that time: -1 / speed-up. The first step includes what went before the
    first decision.

    ### End
    Terminated when the application has finished.

    ### Info
    `action_mask`, `time_us` (simulated), `elapsed_us` (of this step, for semi-Markov learners), `children` (launched so
    far) and `illegal_actions` (so far); after `reset` also `benchmark` and `seed`; at the end also `speedup` over the
    flat version and `episode_metrics`.

    ### Arguments
    - `benchmark`: `random`, an application of random kind and size for each seed, to train on; or one of
      `gpusched_env.games.child_launches.workload.suite.BENCHMARKS`, on an input that the seed draws.
    - `machine`: the GPU; by default the Kepler that SPAWN simulates.
    - `program`: how applications are compiled, fields of `gpusched_env.games.child_launches.problem`, such as
      `{"threshold": 16, "coarsening": 16, "aggregated": True}`; by default as they are written. The flat version, which
      rewards are relative to, stays what it is.
    - `device`: `compiled` or `reference`.
    - `render_mode`: `rgb_array` or `ansi`.

    ### Version history
    - v0: first release.
    """

    actions = 2
    columns = LaunchFeature
    columns_note = COLUMNS_NOTE

    def __init__(
        self,
        benchmark: str = RANDOM,
        *,
        machine: WarpMachine = SPAWN_KEPLER,
        program: Transformations | Mapping[str, Any] = Transformations(),  # noqa: B008  # It cannot be changed.
        device: str = "compiled",
        render_mode: RenderMode | None = None,
    ) -> None:
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.observation_space = observation_space()
        self.action_space = spaces.Discrete(self.actions)
        self.render_mode = render_mode
        self.benchmark = check_benchmark(benchmark)
        self.machine = machine
        self.program = check_program(program)
        self.application = make_application(device)
        self._columns: Singles = np.zeros(WIDTH, np.float32)

    @one_thread_at_a_time
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Singles, dict[str, Any]]:
        """Start an application and run to its first request.

        Args:
            seed: of the application and its input; ``None``: drawn from ``np_random``.
            options: ``{"benchmark": name}`` for this episode only.

        Returns:
            the first observation, and ``info`` as the class describes it.

        Raises:
            InputError: unknown options, or no such benchmark.
        """
        name = check_benchmark(reset_option(options, "benchmark", self.benchmark))
        seed = self._draw_seed(seed)
        written, flat_ps = episode_problem(name, seed, self.machine)
        problem = self.program.applied(written)
        self._run = run = ApplicationEpisode(name, seed, problem, flat_ps)
        self._columns[:] = 0.0
        self.application.begin(problem, self._columns)
        return self._columns.copy(), {**self._info(run), "benchmark": problem.name, "seed": seed}

    @one_thread_at_a_time
    def step(self, action: int | np.integer[Any]) -> tuple[Singles, float, bool, bool, dict[str, Any]]:
        """Answer the request and run to the next one, or to the end.

        Returns:
            observation, reward, terminated, truncated, info, as the class describes them.

        Raises:
            ResetNeeded: the episode has not begun or is over.
            InputError: not an action of the space.
            DeadlockError: the application cannot go on.
        """
        run = self._current()
        if run.over:
            raise ResetNeeded("call reset() first: the episode is over")
        spawn = action_number(action, self.actions) == 1
        application = self.application
        if application.asks:
            application.answer(spawn, self._columns)
        now_ps = application.device.time_ps
        run.elapsed_ps, run.time_ps = now_ps - run.time_ps, now_ps
        run.over = not application.asks
        info = self._info(run)
        if run.over:
            self._columns[:] = 0.0
            info |= self.summary()
        return self._columns.copy(), -run.elapsed_ps / run.flat_ps, run.over, False, info

    @one_thread_at_a_time
    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(2,)``."""
        launches = self._current().problem.machine.launches
        room = launches.overflow != "fail" or self._columns[LaunchFeature.ROOM] > 0.0 or not self.application.asks
        return np.array([True, room])

    @one_thread_at_a_time
    def render(self) -> Any:
        """``ansi``: text, as a string. ``rgb_array``: child blocks and waiting children over time, uint8."""
        run = self._current()
        if not self._draws():
            return None

        return (
            text(run.problem, self.application.device)
            if self.render_mode == "ansi"
            else picture(run.problem, self.application.device)
        )

    def _info(self, run: ApplicationEpisode) -> dict[str, Any]:
        totals = self.application.device.totals
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "time_us": self.application.device.time_ps / 1e6,
            "elapsed_us": run.elapsed_ps / 1e6,
            "children": int(totals["spawned"]),
            "illegal_actions": int(totals["refused"]),
        }

    @one_thread_at_a_time
    def summary(self) -> dict[str, Any]:
        """``speedup`` and ``episode_metrics`` of the episode so far, as ``info`` has them at its end.

        There is no speed-up before that.
        """
        run = self._current()
        totals, gpu = self.application.device.totals, run.problem.machine.gpu
        speedup = {"speedup": run.flat_ps / run.time_ps} if run.over else {}
        metrics = {
            "cost": run.time_ps / run.flat_ps,
            **speedup,
            "time_us": run.time_ps / 1e6,
            "children": float(totals["spawned"]),
            "occupancy": float(totals["warp_ps"] / max(1, run.time_ps * gpu.sms * gpu.limits.warps)),
        }
        return {**speedup, "episode_metrics": metrics}
