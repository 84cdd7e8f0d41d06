"""The environment of task queues: the columns of its observation, its pictures and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.envs.features import FLAG, SHARE, Feature
from gpusched_env.envs.single import SIZE, GameEnv, action_number, check_render_mode, columns_picture, reset_option
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.task_queues.device import TaskKnowledge, TaskView, knowledge_of
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.level_by_level import level_by_level_us
from gpusched_env.games.task_queues.problem import FETCHES, KINDS, MOST_FETCH, STRATEGIES, Form
from gpusched_env.games.task_queues.session import INTERVAL_US, TaskSession
from gpusched_env.games.task_queues.suite import SUITE, kept_problem
from gpusched_env.scheduling.guards import one_thread_at_a_time

LOG_TOP: Final = 1e8
LOG: Final = "log"
COLUMNS_NOTE: Final = """\
### Columns
Sources are fields of `gpusched_env.games.task_queues.device.TaskView`, or of `TaskKnowledge`: known beforehand.
`log`: log1p(x) / log1p(10^8), at most 1.
"""
MOST_OVERWORK: Final = 4.0
"""What a column of overwork shows as 1."""


class TaskFeature(Feature):
    """The queue, the workers, the graph, and the present form."""

    QUEUED = ("tasks that can be read and are in no step", LOG, 0, 1, "queued")
    UNWRITTEN = ("places that are reserved and cannot be read yet", LOG, 0, 1, "unwritten")
    IDLE = ("workers that poll, of all", SHARE, 0, 1, "idle, workers")
    TASKS = ("tasks taken so far", LOG, 0, 1, "tasks")
    OVERWORK = ("tasks taken a vertex that has a result, of 4", SHARE, 0, 1, "overwork")
    MEAN_DEGREE = ("mean degree of the queued vertices", LOG, 0, 1, "mean_degree")
    MOST_DEGREE = ("largest degree of the queued vertices", LOG, 0, 1, "most_degree")
    DEPTH = ("of a search: largest depth among them", LOG, 0, 1, "depth")
    TIME = ("microseconds since the start", LOG, 0, 1, "now_us")
    PERSISTENT = ("1 if the form is persistent", FLAG, 0, 1, "form.strategy")
    DISCRETE = ("1 if it is discrete", FLAG, 0, 1, "form.strategy")
    SYNCHRONOUS = ("1 if it is bulk-synchronous", FLAG, 0, 1, "form.strategy")
    WARP = ("1 if workers are warps", FLAG, 0, 1, "form.worker")
    FETCH = ("tasks that a worker takes at once, of 256", SHARE, 0, 1, "form.fetch")
    THRESHOLD = ("1 if there is a second queue", FLAG, 0, 1, "form.threshold")
    BFS = ("1 if it is a search", FLAG, 0, 1, "application")
    PAGERANK = ("1 if it is a ranking", FLAG, 0, 1, "application")
    COLOURING = ("1 if it is a colouring", FLAG, 0, 1, "application")
    VERTICES = ("of the graph", LOG, 0, 1, "vertices")
    EDGES = ("of the graph, in both directions", LOG, 0, 1, "edges")
    HUB = ("its largest degree", LOG, 0, 1, "most_degree")


def _log(value: float) -> float:
    return min(1.0, math.log1p(value) / math.log1p(LOG_TOP))


def encode(view: TaskView, knowledge: TaskKnowledge) -> NDArray[np.float32]:
    """The columns, float32 of shape ``(len(TaskFeature),)``."""
    form = view.form
    values = (
        *map(_log, (view.queued, view.unwritten)),
        view.idle / view.workers,
        _log(view.tasks),
        min(1.0, view.overwork / MOST_OVERWORK),
        *map(_log, (view.mean_degree, view.most_degree, view.depth, view.now_us)),
        *(float(form.strategy == name) for name in STRATEGIES),
        float(form.worker == "warp"),
        form.fetch / MOST_FETCH,
        float(form.threshold > 0),
        *(float(knowledge.application == name) for name in KINDS),
        *map(_log, (knowledge.vertices, knowledge.edges, knowledge.most_degree)),
    )
    return np.array(values, np.float32)


QUEUED: Final = (230, 159, 0)
BUSY: Final = (0, 114, 178)


def text(session: TaskSession) -> str:
    """A line of the application, one of its queue, one of its workers; lines end in newlines."""
    view = session.view
    return (
        f"{session.problem.name} on {session.problem.machine.gpu.name}   {view.now_us:,.1f} us   {view.form.name}\n"
        f"queued {view.queued:,}   not written {view.unwritten:,}   taken {view.tasks:,}   "
        f"overwork {view.overwork:.2f}\n"
        f"{view.idle:,} of {view.workers:,} workers idle\n"
    )


def picture(history: Sequence[tuple[float, int, int]]) -> NDArray[np.uint8]:
    """Queued tasks (orange, above) and busy workers (blue, below) over time, each up to its most; uint8, of shape
    ``(*SIZE, 3)``.

    Args:
        history: of each step, the time, queued tasks and busy workers.
    """
    if not history:
        return columns_picture(())
    height, width = SIZE
    times, *counts = np.array(history, float).T
    step = np.minimum(np.searchsorted(times, np.linspace(0.0, times[-1], width)), len(times) - 1)
    half = height // 2
    queued, busy = (count[step] * ((half - 1) / max(1.0, count.max())) for count in counts)
    return np.concatenate([columns_picture([(queued, QUEUED)], half), columns_picture([(busy, BUSY)], half)])


RANDOM: Final = "random"
FORMS: Final = (
    *(Form("persistent", worker, fetch) for worker in ("block", "warp") for fetch in FETCHES),
    *(Form("discrete", worker, fetch) for worker in ("block", "warp") for fetch in FETCHES),
    *(Form("bulk-synchronous", "block", fetch) for fetch in FETCHES),
    *(Form("discrete", "block", fetch, threshold=near) for fetch in (32, 128) for near in (4, 32)),
)
"""What can be chosen; those with a threshold come last."""
FIRST: Final = Form("persistent", "block", 32)
"""The form in which an episode begins."""


class TaskQueueEnv(GameEnv[NDArray[np.float32], TaskSession]):
    """A graph algorithm runs from a queue of tasks in device memory; choose the form in which workers take them.

    An episode is a search, a ranking or a colouring on a graph, from its start to its end. Every 50 microseconds the
    agent says how it goes on: with persistent workers that poll, with kernels that the host launches for what is new
    (discrete), or level by level (bulk-synchronous); with blocks or warps; how many tasks a worker takes at once; and
    whether what is far from a search's source waits. Atos (Chen et al., ICPP 2022) fixes this for a run.

    ### Action
    `Discrete(24)`: the forms of `gpusched_env.games.task_queues.environment.env.FORMS`. The present form again costs
    nothing. Another one makes the workers leave at their next look at the queue, what they had taken goes to its back,
    and the host launches anew. Forms with a threshold are for searches: `info["action_mask"]` (int8) and
    `action_masks()` (bool) say so, and one of them elsewhere counts as its form without.

    ### Observation
    A vector of float32 columns within 0 to 1: queue, idle workers, degrees of the frontier, overwork, the form, the
    graph. It is all zeros at the end.

    ### Reward
    Minus the time since the last decision, over the time that the application takes bulk-synchronously with 32 tasks a
    block. The return is exactly minus the episode's time over that time.

    ### End
    Terminated when the application has finished, with the last reward.

    ### Info
    `action_mask`, `time_us` (simulated), `elapsed_us` (of this step), `tasks` (so far), `overwork`, `changes` of the
    form and `illegal_actions` (so far); after `reset` also `problem` and `seed`; at the end also `speedup` over the
    bulk-synchronous form and `episode_metrics`.

    ### Arguments
    - `problem`: `random`, another one for each seed; or one of `gpusched_env.games.task_queues.suite.SUITE`, on a graph
      that the seed draws.
    - `gpus`: on which it runs, linked by NVLink; each owns a part of the graph. Searches and rankings run on several.
    - `interval_us`: between decisions.
    - `device`: `compiled` or `reference`.
    - `render_mode`: `rgb_array` or `ansi`.

    ### Version history
    - v0: first release.
    """

    actions = len(FORMS)
    columns = TaskFeature
    columns_note = COLUMNS_NOTE

    def __init__(
        self,
        problem: str = RANDOM,
        *,
        gpus: int = 1,
        interval_us: float = INTERVAL_US,
        device: str = "compiled",
        render_mode: Literal["rgb_array", "ansi"] | None = None,
    ) -> None:
        check_render_mode(render_mode, self.metadata["render_modes"])
        if not interval_us > 0.0:
            raise InputError(f"interval_us is {interval_us}, must be more than 0")
        self.observation_space = spaces.Box(0.0, 1.0, (len(TaskFeature),), np.float32)
        self.action_space = spaces.Discrete(self.actions)
        self.render_mode = render_mode
        if type(gpus) is not int or gpus < 1:
            raise InputError(f"gpus is {gpus!r}, must be a whole number of at least 1")
        self.problem, self.gpus, self.interval_us = _known(problem), gpus, interval_us
        self.device = make_task_device(device)

    @one_thread_at_a_time
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Launch an application; nothing has run yet.

        Args:
            seed: of the problem and its graph; ``None``: drawn from ``np_random``.
            options: ``{"problem": name}`` for this episode only.

        Raises:
            InputError: unknown options, no such problem, or one that does not run on several GPUs.
        """
        name = _known(reset_option(options, "problem", self.problem))
        seed = self._draw_seed(seed)
        problem = kept_problem(name, seed, self.gpus)
        self._whole_us = level_by_level_us(name, seed, self.gpus)
        self._knowledge: TaskKnowledge = knowledge_of(problem)
        self._run = session = TaskSession(problem, self.device)
        session.begin(FIRST)
        self._elapsed_us, self._illegal = 0.0, 0
        self._history: list[tuple[float, int, int]] = []
        return encode(session.view, self._knowledge), {**self._info(), "problem": problem.name, "seed": seed}

    @one_thread_at_a_time
    def step(self, action: int | np.integer[Any]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Go on in a form for an interval, or to the end.

        Raises:
            ResetNeeded: the episode has not begun or is over.
            InputError: not an action of the space.
            DeadlockError: a queue overflows.
        """
        session = self._current()
        if session.over:
            raise ResetNeeded("call reset() first: the episode is over")
        session.change(self._form(action))
        before_us = session.device.time_ps / 1e6
        over = session.advance(self.interval_us)
        self._elapsed_us = session.device.time_ps / 1e6 - before_us
        view = session.view
        self._history.append((view.now_us, view.queued, view.workers - view.idle))
        info = self._info()
        if over:
            info |= self.summary()
        columns = np.zeros(len(TaskFeature), np.float32) if over else encode(view, self._knowledge)
        return columns, -self._elapsed_us / self._whole_us, over, False, info

    @one_thread_at_a_time
    def summary(self) -> dict[str, Any]:
        """``speedup`` and ``episode_metrics`` of the episode so far, as ``info`` has them at its end.

        There is no speed-up before that.
        """
        session = self._current()
        view = session.view
        ratio = self._whole_us / view.now_us if view.now_us else math.inf
        speedup = {"speedup": ratio} if session.over else {}
        metrics = {"cost": 1.0 / ratio, **speedup, "time_us": view.now_us, "overwork": view.overwork}
        return {**speedup, "episode_metrics": metrics}

    @one_thread_at_a_time
    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(24,)``."""
        search = self._current().problem.application == "bfs"
        return np.array([search or form.threshold == 0 for form in FORMS])

    @one_thread_at_a_time
    def render(self) -> Any:
        """``ansi``: text, as a string. ``rgb_array``: queued tasks and busy workers over time, uint8."""
        session = self._current()
        if not self._draws():
            return None

        return text(session) if self.render_mode == "ansi" else picture(self._history)

    def _form(self, action: Any) -> Form:
        form = FORMS[action_number(action, self.actions)]
        if form.threshold and self._current().problem.application != "bfs":
            self._illegal += 1
            return Form(form.strategy, form.worker, form.fetch)
        return form

    def _info(self) -> dict[str, Any]:
        session = self._current()
        view = session.view
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "time_us": view.now_us,
            "elapsed_us": self._elapsed_us,
            "tasks": view.tasks,
            "overwork": view.overwork,
            "changes": int(session.device.totals["changes"]),
            "illegal_actions": self._illegal,
        }


def _known(name: str) -> str:
    if name not in (RANDOM, *SUITE):
        raise InputError(f"problem is {name!r}; {did_you_mean(name, (RANDOM, *SUITE))}")
    return name
