"""A training under way: how good the policy is by now, on episodes that it was not trained on, and what is kept of it.

TensorBoard shows of validations ``validation/cost``, ``validation/best_cost``, with costs of baselines on the same
episodes ``validation/gap_to_best_baseline`` (relative, to the best of those known by then: below 0 the policy is
better), every metric and reward term, and
``validation/schedule``, a picture of an episode. The page of hyper-parameters has these results.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.logger import HParam, TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.model_file import Decide
from gpusched_env.agents.rollout import play_episodes
from gpusched_env.agents.sb3_vec_env import info_row
from gpusched_env.agents.training.config import Training, TrainingConfig
from gpusched_env.agents.training.environments import (
    env_arguments,
    training_changes,
    validation_env,
    validation_seeds,
    variant_problems,
)
from gpusched_env.agents.training.folder import (
    BEST,
    BOARD,
    CHECKPOINTS,
    EXPORTED,
    VALIDATION,
    Checkpoints,
    CurveEntry,
    LearningCurve,
    write_json,
)
from gpusched_env.agents.training.progress import OnProgress, TrainingProgress
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.observations import Observation
from gpusched_env.envs.single import episode_summary
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.episodes.charts import window_us
from gpusched_env.episodes.session import Episode
from gpusched_env.scenarios.problem import Problem


@dataclass(frozen=True, slots=True)
class PolicyDecider:
    """A :data:`~gpusched_env.agents.model_file.Decide` as an exported policy, whose episodes run in compiled loops."""

    policy: ExportedPolicy

    def __call__(
        self, observations: Observation, state: Any, starts: NDArray[np.bool_], masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Any]:
        return self.policy.act(observations, masks), state


class Learner(Protocol):
    """A policy in training."""

    def decider(self) -> Any:
        """The learner's policy as it is now, whatever it learns afterwards, as the judge of its training takes it; it
        draws from no generator."""

    def keep(self) -> None:
        """Save the policy that :meth:`decider` gave last as the best."""

    def state(self) -> dict[str, Any]:
        """All that the rest of its training depends on, for a checkpoint."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What a validation found."""

    costs: list[float]
    """Costs of each episode."""
    cost: float
    """The mean of the costs, as policies are chosen by it."""
    figures: dict[str, float]
    """Figures for TensorBoard, by name."""
    picture: NDArray[np.uint8] | None
    """Picture of an episode, shape ``(height, width, 3)``."""


class Judge(Protocol):
    """Plays the validation episodes."""

    seeds: list[int]
    """Seeds of the validation episodes."""

    def judge(self, decide: Any) -> ValidationResult:
        """Play the validation episodes with a policy."""

    def close(self) -> None:
        """End its threads, if it has any."""


class EpisodeJudge:
    """Episodes of the training variants of a scenario."""

    def __init__(self, config: TrainingConfig) -> None:
        self.seeds = validation_seeds(config) * len(training_changes(config))
        self._config = config
        problems = [problem for problem in variant_problems(config) for _ in range(config.validation_seeds)]
        self._episodes = list(zip(problems, self.seeds, strict=True))
        self._env: GpuSchedulingVectorEnv | None = None

    def judge(self, decide: Decide) -> ValidationResult:
        if isinstance(decide, PolicyDecider):
            episodes = play_compiled(decide.policy, self._episodes, self._config.threads)
        else:
            self._env = self._env or validation_env(self._config)
            episodes = play(decide, self._env, self.seeds)
        picture = gantt(decide, self._config, self.seeds[0])
        costs = [episode.metrics["cost"] for episode in episodes]
        return ValidationResult(costs, statistics.fmean(costs), mean_figures(episodes), picture)

    def close(self) -> None:
        if self._env is not None:
            self._env.close()


class TrainingRun:
    """One training, from the first step to the last: validations, checkpoints, the learning curve."""

    def __init__(
        self,
        config: Training,
        out: Path,
        judge: Judge,
        *,
        command: str,
        baselines: Mapping[str, float] | None,
        watch: OnProgress | None,
        saves: bool,
        state: dict[str, Any] | None,
    ) -> None:
        """
        Args:
            judge: of its validations; closed with the course.
            command: the command line, to be noted in exported policies.
            baselines: mean costs of other schedulers on the validation episodes, which may become more meanwhile.
            saves: whether checkpoints are written.
            state: of the last checkpoint, from which it goes on.
        """
        self.config, self.out, self.command = config, out, command
        self.curve: list[CurveEntry] = []
        self.stopped = False
        """Whether the watcher ended the training."""
        self._baselines: Mapping[str, float] = {} if baselines is None else baselines
        self._noted = 0
        """How many baselines the learning curve was written with."""
        self._first: tuple[int, Any] | None = None
        """Decisions before it and the policy at the beginning, until it is judged."""
        self._watch, self._saves = watch, saves
        self._checkpoints = Checkpoints(out / CHECKPOINTS)
        self._judge = judge
        self._next_validation = self._next_checkpoint = 0
        self._train_s, self._since = 0.0, time.perf_counter()
        first_step = None
        if state is not None:
            self.curve, self._next_validation, self._next_checkpoint, self._train_s, timesteps = state["course"]
            first_step = timesteps + 1
        self.board = TensorBoard(out / BOARD, first_step)
        if state is None:
            self.board.hyper_parameters(config, RESULTS[:2] if baselines is None else RESULTS)

    @property
    def best_cost(self) -> float | None:
        """The lowest mean cost of a validation."""
        return min((point.cost for point in self.curve), default=None)

    @property
    def train_s(self) -> float:
        """Wall time of the training, of interrupted parts up to their last checkpoint."""
        return self._train_s + time.perf_counter() - self._since

    def boundary(self, learner: Learner, timesteps: int) -> None:
        """Validate and write a checkpoint, if it is time; between two rollouts or generations.

        The policy at the beginning is judged at the next boundary, as learning is not to wait for that.
        """
        self._judge_first(timesteps)
        if timesteps >= self._next_validation:
            self._next_validation = timesteps + self.config.validate_every
            if not self.curve:
                self._first = timesteps, learner.decider()
                learner.keep()
                self.tell(timesteps)
                return
            self._validate(learner, timesteps)
        if timesteps >= self._next_checkpoint:
            self._next_checkpoint = timesteps + self.config.checkpoint_every
            self._save(learner, timesteps)

    def end(self, learner: Learner, timesteps: int) -> None:
        """Validate what there is no validation of yet. The training can be prolonged later."""
        self._judge_first(timesteps)
        if not self.curve or self.curve[-1].timesteps < timesteps:
            self._validate(learner, timesteps)
        self._save(learner, timesteps)

    def tell(self, timesteps: int, validation: CurveEntry | None = None, *, validating: bool = False) -> None:
        """Tell the watcher how far the training is, and of a validation that has been made, or begins."""
        now = TrainingProgress(timesteps, validation, self.best_cost, validating)
        if self._watch is not None and self._watch(now) is False:
            self.stopped = True
        if self.curve and len(self._baselines) > self._noted:
            self._note()

    def close(self) -> None:
        """End the threads of the environments, and close files."""
        self._judge.close()
        self.board.close()

    def _save(self, learner: Learner, timesteps: int) -> None:
        if self._saves:
            mine = (list(self.curve), self._next_validation, self._next_checkpoint, self.train_s, timesteps)
            self._checkpoints.write(timesteps, {"course": mine, "learner": learner.state()})

    def _judge_first(self, timesteps: int) -> None:
        if self._first is not None:
            (taken, decide), self._first = self._first, None
            self._judge_policy(decide, taken, timesteps, keep=lambda: None)

    def _validate(self, learner: Learner, timesteps: int) -> None:
        self._judge_policy(learner.decider(), timesteps, timesteps, keep=learner.keep)

    def _judge_policy(self, decide: Any, taken: int, timesteps: int, *, keep: Callable[[], None]) -> None:
        """Note and tell what a policy costs that was ``taken`` after so many decisions; ``keep`` it if it is the
        best."""
        self.tell(timesteps, validating=True)
        judged = self._judge.judge(decide)
        cost = judged.cost
        best = self.best_cost is None or cost < self.best_cost
        if best:
            keep()
        point = CurveEntry(timesteps=taken, cost=cost, costs=judged.costs, best=best)
        self.curve.append(point)
        baselines = self._note()
        scalars = {f"validation/{name}": value for name, value in judged.figures.items()}
        scalars |= {"validation/cost": cost, "validation/best_cost": min(p.cost for p in self.curve)}
        if baselines:
            scalars["validation/gap_to_best_baseline"] = cost / min(baselines.values()) - 1.0
        self.board.scalars(scalars, taken)
        if judged.picture is not None:
            self.board.image("validation/schedule", judged.picture, taken)
        self.tell(timesteps, point)

    def _note(self) -> dict[str, float]:
        """Write the learning curve; returns the costs of baselines that are in it."""
        baselines = dict(self._baselines)
        self._noted = len(baselines)
        kept = [name for name in (BEST, EXPORTED) if (self.out / name).exists()]
        noted = LearningCurve(seeds=self._judge.seeds, baselines=baselines, validations=self.curve, kept=kept)
        write_json(noted, self.out / VALIDATION)
        return baselines


# ---- episodes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValidationEpisode:
    """One episode of a policy."""

    metrics: dict[str, float]
    """``episode_metrics`` of the last info."""
    rewards: dict[str, float]
    """``reward_terms`` of the last info."""
    decisions: int
    """Steps of the environment, waits included."""
    illegal: int


def play(decide: Decide, env: GpuSchedulingVectorEnv, seeds: Sequence[int]) -> list[ValidationEpisode]:
    """Play one episode in each environment, with the best action of each decision.

    Args:
        env: in ``SAME_STEP`` mode.
        seeds: of the episodes, one an environment.
    """
    observations, _ = env.reset(seed=list(seeds))
    found: dict[int, ValidationEpisode] = {}
    state: Any = None
    starts: NDArray[np.bool_] = np.ones(env.num_envs, np.bool_)
    steps = 0
    while len(found) < env.num_envs:
        actions, state = decide(observations, state, starts, env.action_masks())
        observations, _, terminations, truncations, infos = env.step(actions)
        starts = terminations | truncations
        steps += 1
        for e in np.flatnonzero(starts).tolist():
            if e not in found:
                last = info_row(infos["final_info"], e)
                found[e] = ValidationEpisode(
                    last["episode_metrics"], last["reward_terms"], steps, last["illegal_actions"]
                )
    return [found[e] for e in range(env.num_envs)]


def play_compiled(
    policy: ExportedPolicy, episodes: Sequence[tuple[Problem, int]], threads: int
) -> list[ValidationEpisode]:
    """As :func:`play`, without Python between the decisions: one episode of each problem, with its seed."""
    found: dict[int, ValidationEpisode] = {}

    def note(number: int, episode: Episode, asked: int) -> None:
        # As environments count them: every action.
        last = episode_summary(replace(episode, decisions=asked))
        # An environment takes one step to its end even where nothing is decided.
        found[number] = ValidationEpisode(last["episode_metrics"], last["reward_terms"], max(1, asked), illegal=0)

    play_episodes(policy, policy.info.actions, episodes, note, copies=len(episodes), threads=threads)
    return [found[number] for number in range(len(episodes))]


def mean_figures(episodes: Sequence[ValidationEpisode]) -> dict[str, float]:
    """Means of metrics (``metrics/NAME``), rewards (``reward/TERM``), decisions and the share of illegal actions."""
    gathered: dict[str, list[float]] = {}
    for episode in episodes:
        figures = {f"metrics/{name}": value for name, value in episode.metrics.items()}
        figures |= {f"reward/{name}": value for name, value in episode.rewards.items()}
        figures |= {"decisions": episode.decisions, "illegal_share": episode.illegal / episode.decisions}
        for name, value in figures.items():
            gathered.setdefault(name, []).append(value)
    return {name: statistics.fmean(values) for name, values in gathered.items()}


def gantt(decide: Decide, config: TrainingConfig, seed: int) -> NDArray[np.uint8]:
    """Streams and SMs over time as the environment renders them, uint8 of shape ``(height, width, 3)``.

    From where all tenants first have a job; if they never do before the episode ends, its end.
    """
    env = GpuSchedulingEnv(config.scenario, render_mode="rgb_array", **env_arguments(config))
    span_us = window_us(env.problem)
    observation, info = env.reset(seed=seed)
    state, starts, over = None, np.ones(1, np.bool_), False
    met_us: float | None = None
    while not over and (met_us is None or info["time_us"] < met_us + 0.9 * span_us):
        batch = {name: table[None] for name, table in observation.items()}
        actions, state = decide(batch, state, starts, env.action_masks()[None])
        observation, _, terminated, truncated, info = env.step(int(actions[0]))
        starts[:] = False
        over = terminated or truncated
        if met_us is None and env.view.tenants.jobs_waiting.all():
            met_us = info["time_us"]
    picture: NDArray[np.uint8] = env.render()
    env.close()
    return picture


# ---- TensorBoard ------------------------------------------------------------------------------------------

RESULTS = ("validation/cost", "validation/best_cost", "validation/gap_to_best_baseline")
"""Scalars that the table of hyper-parameters shows."""
HYPERPARAMETERS = ("algo", "policy", "timesteps", "seed", "envs", "variants", "slots", "running_slots", "wait_us")
"""Fields that trainings of one scenario differ in."""


class TensorBoard(TensorBoardOutputFormat):
    """Writes to a folder, and goes on in one: what an earlier run wrote from ``first_step`` on is dropped."""

    def __init__(self, folder: Path, first_step: int | None = None) -> None:
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=first_step)
        self._is_closed = False

    def scalars(self, figures: dict[str, float], step: int) -> None:
        """Write now, whatever the logger has gathered."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def image(self, name: str, image: NDArray[np.uint8], step: int) -> None:
        """Write a picture, shape ``(height, width, 3)``."""
        self.writer.add_image(name, image, step, dataformats="HWC")
        self.writer.flush()

    def hyper_parameters(self, config: Training, results: tuple[str, ...]) -> None:
        """Write a session of TensorBoard's HPARAMS page; the scalars ``results`` are its metrics."""
        given = {name: getattr(config, name, None) for name in HYPERPARAMETERS}
        given |= {"scenario": config.name, **config.settings, **getattr(config, "policy_kwargs", {})}
        given["imitation"] = None if config.imitation is None else config.imitation.scheduler
        values: dict[str, bool | str | float | int] = {
            name: value if isinstance(value, (bool, str, float, int)) else str(value)
            for name, value in given.items()
            if value is not None
        }
        self.write({"hparams": HParam(values, dict.fromkeys(results, 0.0))}, {"hparams": ()}, 0)
