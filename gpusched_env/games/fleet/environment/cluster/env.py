"""The environment of placing pods on a cluster, with its pictures and words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.envs.single import SIZE, GameEnv, action_number, check_render_mode, columns_picture, reset_option
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, USED_MILLI
from gpusched_env.games.fleet.environment.cluster.copies import At, Copies, Size, Total, with_room
from gpusched_env.games.fleet.environment.cluster.encoding import COLUMNS_NOTE, WIDTH, PlacementFeature
from gpusched_env.games.fleet.environment.cluster.playing import begin_copy, step_copies
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM, check_name, new_copy
from gpusched_env.games.fleet.environment.cluster.shortlist import CANDIDATES
from gpusched_env.scheduling.guards import one_thread_at_a_time

Rows = NDArray[np.float32]
HUNDRED: Final = 100.0
IN_USE: Final = (0, 114, 178)
FRAGMENTED: Final = (230, 159, 0)
FREE: Final = (200, 200, 200)
BAR: Final = 8
"""Width of a bar of the picture, pixels."""


def observation_space() -> spaces.Space[Rows]:
    """A row for each candidate, a column for each feature."""
    low, high = (
        np.tile(np.array([getattr(feature, bound) for feature in PlacementFeature], np.float32), (CANDIDATES, 1))
        for bound in ("low", "high")
    )
    return spaces.Box(low, high, dtype=np.float32)


def check_shaping(shaping: float) -> float:
    """The weight of the potential.

    Raises:
        InputError: it is none.
    """
    if not 0.0 <= shaping < float("inf"):
        raise InputError(f"shaping is {shaping}, must be a number of at least 0")
    return float(shaping)


def percent_of(copies: Copies, total: int) -> NDArray[np.float64]:
    """(copies,) one of the thousandths of GPUs of :class:`~gpusched_env.games.fleet.cluster.state.ClusterState`'s
    totals, in per cent of the GPUs."""
    found: NDArray[np.float64] = HUNDRED * copies.state.totals[:, total] / copies.totals[:, Total.GPU]
    return found


def potential(copies: Copies) -> NDArray[np.float64]:
    """(copies,) minus the per cent of the GPUs that are fragmented; 0 at the end of an episode."""
    over = copies.at[:, At.POD] >= copies.sizes[:, Size.PODS]
    return np.where(over, 0.0, -percent_of(copies, FRAGMENTED_MILLI))


@dataclass(slots=True)
class PlacementUnderWay:
    """An episode under way."""

    copies: Copies
    problem: str
    before: float
    """The potential of the last decision; at first what the whole cluster has."""
    total: float = 0.0
    """Per cent of the GPUs that pods have been given."""
    history: list[tuple[float, float]] = field(default_factory=list)
    """Per cent of the GPUs in use, and fragmented, after each step."""

    @property
    def over(self) -> bool:
        return bool(self.copies.at[0, At.POD] >= self.copies.sizes[0, Size.PODS])


class ClusterPlacementEnv(GameEnv[Rows, PlacementUnderWay]):
    """Pods come to a cluster of nodes with GPUs; choose the node and the GPUs of each.

    Pods ask for CPU, memory, and no GPU, a part of one, one or several, some on some GPU models only. They come until
    they have asked for 130 % of the GPUs, and stay. A pod that fits nowhere is dropped without a decision; every other
    one is placed. What counts is how many GPUs are in use at the end (Weng et al., USENIX ATC 2023).

    ### Action
    `Discrete(32)`: one of the candidates, each a node with GPUs for the pod. They are the best nodes by several scores
    and of each GPU model, equal nodes once (`gpusched_env.games.fleet.environment.cluster.shortlist`). 0 is what FGD as
    published takes. Which there are is in `info["action_mask"]` (int8) and `action_masks()` (bool); an action that is
    masked out counts as 0.

    ### Observation
    Float32 of shape `(32, columns)`, within -1 to 1: a row for each candidate, with its node as it would be after the
    pod, scores of published policies, the pod, and the cluster in all. There may be any number of nodes. It is all
    zeros at the end.

    ### Reward
    The per cent of the cluster's GPUs that the pod takes. The return is exactly the allocation at the end. With
    `shaping` above 0 the change of a potential is added: minus the per cent of the GPUs that are fragmented, times
    `shaping`; it begins and ends with 0, so that the return is the same for all ways to play.

    ### End
    Terminated when all pods have been placed or dropped.

    ### Info
    `action_mask`, `allocation` and `fragmentation` (per cent of the GPUs), `pods` (so far), `dropped` and
    `illegal_actions` (so far); after `reset` also `problem` and `seed`; at the end also `episode_metrics`.

    ### Arguments
    - `problem`: `random`, another cluster and workload for each seed, to train on
      (`gpusched_env.games.fleet.environment.cluster.drawn`); a published workload, such as `default`, `cpu200` or
      `gpuspec25`, on the published cluster, whose arrivals the seed draws; or tables of one's own,
      `NODES.csv:PODS.csv`.
    - `shaping`: weight of the potential.
    - `render_mode`: `rgb_array` or `ansi`.

    ### Version history
    - v0: first release.
    """

    actions = CANDIDATES
    columns = PlacementFeature
    columns_note = COLUMNS_NOTE

    def __init__(
        self,
        problem: str = RANDOM,
        *,
        shaping: float = 0.0,
        render_mode: Literal["rgb_array", "ansi"] | None = None,
    ) -> None:
        check_render_mode(render_mode, self.metadata["render_modes"])
        check_name(problem)
        self.observation_space = observation_space()
        self.action_space = spaces.Discrete(self.actions)
        self.render_mode = render_mode
        self.problem, self.shaping = problem, check_shaping(shaping)
        self._rows: Rows = np.zeros((1, CANDIDATES, WIDTH), np.float32)
        self._actions = np.zeros(1, np.int64)
        self._rewards, self._over = np.zeros(1), np.zeros(1, np.bool_)

    @one_thread_at_a_time
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Rows, dict[str, Any]]:
        """Empty the cluster, and go to the first pod that fits.

        Args:
            seed: of the arrivals and of the order of nodes; ``None``: drawn from ``np_random``.
            options: ``{"problem": name}`` for this episode only.

        Returns:
            the first observation, and ``info`` as the class describes it.

        Raises:
            InputError: unknown options, or no such problem.
        """
        name = reset_option(options, "problem", self.problem)
        seed = self._draw_seed(seed)
        copies = with_room(None, 0, 1, new_copy(name, seed))
        begin_copy(copies, 0, self._rows[0])
        self._run = PlacementUnderWay(copies, name, 0.0)
        return self._rows[0].copy(), {**self._info(), "problem": name, "seed": seed}

    @one_thread_at_a_time
    def step(self, action: int | np.integer[Any]) -> tuple[Rows, float, bool, bool, dict[str, Any]]:
        """Place the pod and go to the next one that fits, or to the end.

        Returns:
            observation, reward, terminated, truncated, info, as the class describes them.

        Raises:
            ResetNeeded: the episode has not begun or is over.
            InputError: not an action of the space.
        """
        run = self._current()
        if run.over:
            raise ResetNeeded("call reset() first: the episode is over")
        self._actions[0] = action_number(action, self.actions)
        step_copies(run.copies, self._actions, self._rewards, self._over, self._rows)
        reward = float(self._rewards[0])
        run.total += reward
        if self.shaping:
            now = float(potential(run.copies)[0])
            reward, run.before = reward + self.shaping * (now - run.before), now
        over = bool(self._over[0])
        info = self._info()
        run.history.append((info["allocation"], info["fragmentation"]))
        return self._rows[0].copy(), reward, over, False, info | (self.summary() if over else {})

    @one_thread_at_a_time
    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(32,)``."""
        return np.arange(CANDIDATES) < self._candidates()

    @one_thread_at_a_time
    def summary(self) -> dict[str, Any]:
        """``episode_metrics`` of the episode so far, as ``info`` has them at its end."""
        run = self._current()
        at = run.copies.at[0]
        metrics = {
            "cost": 1.0 - run.total / HUNDRED,
            "allocation": run.total,
            "fragmentation": float(percent_of(run.copies, FRAGMENTED_MILLI)[0]),
            "dropped": float(at[At.DROPPED] / max(1, at[At.POD])),
        }
        return {"episode_metrics": metrics}

    @one_thread_at_a_time
    def render(self) -> Any:
        """``ansi``: text, as a string. ``rgb_array``: GPUs in use, fragmented and free over the pods so far, uint8."""
        run = self._current()
        if not self._draws():
            return None
        return text(run) if self.render_mode == "ansi" else picture(run)

    def _candidates(self) -> int:
        run = self._current()
        return 0 if run.over else int(run.copies.shortlist.count[0, 0])

    def _info(self) -> dict[str, Any]:
        run = self._current()
        at = run.copies.at[0]
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "allocation": float(percent_of(run.copies, USED_MILLI)[0]),
            "fragmentation": float(percent_of(run.copies, FRAGMENTED_MILLI)[0]),
            "pods": int(at[At.POD]),
            "dropped": int(at[At.DROPPED]),
            "illegal_actions": int(at[At.ILLEGAL]),
        }


def text(run: PlacementUnderWay) -> str:
    """A line of the cluster, one of its pods, one for each GPU model; lines end in newlines."""
    copies, nodes = run.copies, int(run.copies.sizes[0, Size.NODES])
    at = copies.at[0]
    lines = [
        f"{run.problem}: {nodes} nodes, {percent_of(copies, USED_MILLI)[0]:.1f} % of the GPUs in use, "
        f"{percent_of(copies, FRAGMENTED_MILLI)[0]:.1f} % fragmented",
        f"pods {at[At.POD]} of {copies.sizes[0, Size.PODS]}, dropped {at[At.DROPPED]}",
    ]
    for model, gpus in enumerate(copies.demand.model_gpus[0].tolist()):
        if gpus:
            lines.append(f"model {model}: {copies.demand.model_used[0, model] / 1000:.1f} of {gpus} GPUs in use")
    return "\n".join(lines) + "\n"


def picture(run: PlacementUnderWay) -> NDArray[np.uint8]:
    """The episode so far, from left to right, uint8 of shape ``(*SIZE, 3)``: of all GPUs, blue those in use, orange
    above them the fragmented ones, grey the rest."""
    if not run.history:
        return columns_picture(())
    height, width = SIZE
    pods = int(run.copies.sizes[0, Size.PODS])
    done = int(run.copies.at[0, At.POD])
    used, fragmented = np.array(run.history).T
    pod = np.arange(width) // BAR * BAR * pods // width
    place = np.minimum(pod * len(run.history) // max(1, done), len(run.history) - 1)
    shown = pod < done
    tops = np.stack((np.full(width, HUNDRED), (used + fragmented)[place], used[place])) * (height - 1) / HUNDRED
    return columns_picture(zip(np.where(shown, tops, 0.0), (FREE, FRAGMENTED, IN_USE), strict=True))
