"""The vector environment: many copies of :class:`GpuSchedulingEnv` that one compiled call steps."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import logger
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.observations import RUNNING_SLOTS, NamedTables, Observation, ObservationEncoder, Recycled
from gpusched_env.envs.setup import check_count, check_record, check_wait, lay_out, offered
from gpusched_env.envs.single import SEED_LIMIT, GameEnv, check_render_mode, episode_summary
from gpusched_env.envs.state import VectorState, check_state
from gpusched_env.envs.vector_arguments import (
    EpisodeScenarios,
    SampleScenario,
    action_array,
    autoreset_mode_of,
    check_compiled,
    for_environment,
    no_action,
    options_of,
    rows_to_reset,
    seeds_of,
    thread_count,
)
from gpusched_env.envs.vector_drawing import VectorDrawing
from gpusched_env.envs.vector_infos import (
    Counters,
    Generators,
    Rows,
    add_seeds,
    batched_infos,
    count_actions,
    count_results,
    last_info,
)
from gpusched_env.episodes.session import Episode, last_view
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.guards import OneThread, Uncopied, one_thread_at_a_time
from gpusched_env.scheduling.timeline import Detail

NONE: NDArray[np.int64] = np.zeros(0, np.int64)
NO_ACTION_LOG: NDArray[np.int32] = np.zeros((0, 0), np.int32)
CACHED_PROBLEMS = 64
"""Problems that a vector environment keeps for further episodes, beyond those in use."""


class GpuSchedulingVectorEnv(OneThread, Uncopied, VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """``num_envs`` environments on the compiled device, each with a GPU, tenants and seed of its own.

    Step by step the same as a ``gymnasium.vector.SyncVectorEnv`` of as many
    :class:`~gpusched_env.envs.env.GpuSchedulingEnv`, which documents actions, observations, rewards and infos;
    only faster. Infos are arrays over the environments with masks ``_key``, as Gymnasium's.

    An environment whose episode is over begins the next by itself. ``autoreset_mode`` says when
    (https://farama.org/Vector-Autoreset-Mode): ``NEXT_STEP`` in the following step, which ignores its action;
    ``SAME_STEP`` at once, with the end in ``final_obs`` and ``final_info``; ``DISABLED`` not by itself: ``reset``
    with ``options={"reset_mask": over}``.

    Episode seeds, as there: ``reset(seed=s)`` gives ``s + i`` to environment ``i``; later episodes draw theirs from
    the environment's ``np_random``.

    Args:
        scenario, slots, running_slots, wait_us, interval_us, futures, record, overrides: as for
            :class:`~gpusched_env.envs.env.GpuSchedulingEnv`. Without ``slots``, there are as many tenant rows
            as the environment with most tenants needs.
        num_envs: number of environments.
        autoreset_mode: when an environment begins its next episode.
        threads: how many step the environments; default: one for every
            :data:`~gpusched_env.envs.vector_arguments.ENVIRONMENTS_A_THREAD` environments, as far as there are
            cores. Results do not depend on it.
        copy: whether observations are copies. Otherwise every step, reset and ``restore_state`` returns the same
            arrays, and the next one overwrites what they hold: whoever keeps observations, as a rollout or a
            replay buffer does, has to copy them first. Everything else that is returned is new in any case.
        scenarios: fields of the scenario to replace in each environment, one mapping an environment, for all
            of its episodes: other GPUs, tenants, rates.
        sample_scenario: asked with the number and the ``np_random`` of an environment for fields to replace in
            its next episode (``None``: none), whenever an episode begins whose scenario is not an option of
            ``reset``. Called before the episode's seed is drawn. A scenario that was not used lately costs
            tens of milliseconds to prepare.
        device: must be ``compiled``.
        render_mode: ``rgb_array`` or ``ansi``; :meth:`render` draws every environment.
    """

    metadata: dict[str, Any] = {**GameEnv.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | Path | Scenario = "InferenceBesideTraining",
        *,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
        copy: bool = True,
        scenarios: Sequence[Mapping[str, Any]] | None = None,
        sample_scenario: SampleScenario | None = None,
        device: str = "compiled",
        render_mode: Literal["rgb_array", "ansi"] | None = None,
        slots: int | None = None,
        running_slots: int = RUNNING_SLOTS,
        wait_us: float = 100.0,
        interval_us: float | None = None,
        futures: bool = False,
        record: Detail | None = None,
        **overrides: Any,
    ) -> None:
        """Make the environments; ``reset`` begins their first episodes.

        Raises:
            InputError: names what is not acceptable, and of which environment.
        """
        check_compiled(device)
        check_render_mode(render_mode, self.metadata["render_modes"])
        check_count(num_envs)
        check_record(record)
        self.num_envs, self.copy = num_envs, copy
        self.autoreset_mode = autoreset_mode_of(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.scenario, interval_us, rejects = offered(scenario, overrides, interval_us)
        self._scenarios = EpisodeScenarios(self.scenario, num_envs, scenarios, sample_scenario)
        most = max(self._scenarios.bases, key=lambda base: len(base.tenants))
        self.layout = lay_out(
            most, slots=slots, running_slots=running_slots, interval_us=interval_us, rejects=rejects, futures=futures
        )
        self._scenarios.check(self.layout)
        self.single_observation_space = ObservationEncoder.of(self.layout).space()
        self.single_action_space = self.layout.space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.wait_us = check_wait(wait_us)
        self._build: Callable[[Scenario], Problem] = functools.lru_cache(CACHED_PROBLEMS)(build_problem)
        for index, base in enumerate(self._scenarios.bases):
            self._problem(index, base)
        self._batch = EnvBatch(num_envs, self.layout, wait_us=self.wait_us, threads=thread_count(threads, num_envs))
        self._memory = Recycled({name: table.shape for name, table in self._batch.observations.items()})
        self.entry = self._batch.entry
        self._record: Detail = record if record is not None else "jobs"
        self._generators = Generators(num_envs)
        self._counters = Counters(num_envs, self._batch.times_us)
        self.render_mode: Literal["rgb_array", "ansi"] | None = None
        self._drawing: VectorDrawing | None = None
        if render_mode is not None:
            self.draw_in(render_mode)
        self._chosen = np.zeros(num_envs, np.int64)
        self._ready = False

    # ---- Gymnasium -------------------------------------------------------------------------------

    @one_thread_at_a_time
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in every environment, or in some.

        Args:
            seed: of environment 0, the others follow; or one for each, ``None`` where it is to be drawn.
            options: ``scenario``: fields of the scenario to replace in this episode; ``scenarios``: one such
                mapping an environment (after ``scenario``); ``reset_mask``: bool array, the environments that
                begin, while the others go on where they are.

        Returns:
            the observations of all environments, and infos of those that began.

        Raises:
            InputError: what is wrong with an argument; nothing has changed then.
            ResetNeeded: a partial reset before a full one.
        """
        self._check_open()
        options = options_of(options)
        rows = rows_to_reset(options.pop("reset_mask", None), self.num_envs)
        if not (rows.all() or self._ready):
            raise ResetNeeded("call reset() without reset_mask first: some environments have not begun")
        seeds = seeds_of(seed, self.num_envs)
        # Anything that can be refused comes first.
        given = self._scenarios.given(options)
        numbers = np.flatnonzero(rows).tolist()
        fresh = {index: seeding.np_random(seeds[index]) for index in numbers if seeds[index] is not None}
        problems = {}
        for index in numbers:
            generator = fresh[index][0] if index in fresh else self._generators[index]
            problems[index] = self._problem(index, given[index] if given else self._scenarios.draw(index, generator))
        self._ready = False
        for index, (generator, generator_seed) in fresh.items():
            self._generators.set(index, generator, generator_seed)
        for index in numbers:
            self._begin(index, problems[index], seeds[index])
        self._batch.run()
        self._ready = True
        return self._observations(), add_seeds(self._infos(rows), self._counters.seeds, rows)

    @one_thread_at_a_time
    def step(
        self, actions: ArrayLike
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Carry out one action in each environment and run it to its next decision, or to the end.

        Args:
            actions: integers, shape ``(num_envs,)``. An illegal action counts as a wait.

        Returns:
            observations, rewards, terminations, truncations and infos, each over the environments.

        Raises:
            ResetNeeded: an episode has not begun or, with ``DISABLED``, is over.
            InputError: not actions of the space; nothing has changed then.
        """
        self._check_ready()
        batch, counters, mode = self._batch, self._counters, self.autoreset_mode
        self._chosen[:] = action_array(actions, self.num_envs)
        if self._drawing is not None:
            self._drawing.make_room()
        wrong, over, counted = count_actions(
            self._chosen, batch.reasons, batch.masks, counters.over, mode is not AutoresetMode.DISABLED,
            counters.decisions, counters.illegal, NO_ACTION_LOG if self._drawing is None else self._drawing.kept,
        )  # fmt: skip
        if wrong >= 0:
            raise no_action(actions, wrong, self.layout.n)
        if not counted:
            raise ResetNeeded(f"the episode of environment {over} is over: reset it with options={{'reset_mask': ...}}")
        self._ready = False
        observations = self._memory.tables() if self.copy else NamedTables(batch.observations)
        batch.step(self._chosen, observations)
        again = np.flatnonzero(counters.over) if over >= 0 else NONE
        rewards = np.empty(self.num_envs)
        terminations, truncations = np.zeros(self.num_envs, np.bool_), np.empty(self.num_envs, np.bool_)
        if not count_results(batch.reasons, batch.costs, counters.costs, counters.over, rewards, truncations):
            infos = self._go_on(again, observations)
            self._ready = True
            return observations, rewards, terminations, truncations, infos
        ended = np.flatnonzero(truncations)
        for index in ended.tolist():
            terminations[index] = batch.devices[index].done
            truncations[index] = not terminations[index]
        endings: dict[str, Any] = {}
        if mode is AutoresetMode.SAME_STEP:
            for index in ended.tolist():
                ending = last_info(
                    batch, index, int(counters.illegal[index]), self._episode(index, batch.devices[index])
                )
                last = NamedTables({name: table[index].copy() for name, table in batch.observations.items()})
                endings = self._add_info(endings, {"final_obs": last, "final_info": ending}, index)
            counters.over[:] = False
            infos = self._go_on(ended, observations) | endings
        else:
            infos = self._go_on(again, observations)
            for index in ended.tolist():
                infos = self._add_info(infos, episode_summary(self._episode(index, batch.devices[index])), index)
        self._ready = True
        return observations, rewards, terminations, truncations, infos

    def _go_on(self, again: NDArray[np.int64], observations: Observation) -> dict[str, Any]:
        """Begin the next episodes of the environments ``again``; gives the infos of all of them."""
        if not again.size:
            return self._infos(None)
        self._begin_next(again.tolist())
        if self.copy:
            for name, table in observations.items():
                table[again] = self._batch.observations[name][again]
        began = np.zeros(self.num_envs, np.bool_)
        began[again] = True
        return add_seeds(self._infos(None), self._counters.seeds, began)

    @one_thread_at_a_time
    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(num_envs, actions)``."""
        self._check_ready()
        return self._batch.masks.copy()

    @one_thread_at_a_time
    def render(self) -> tuple[Any, ...] | None:
        """The present of every environment as the single environment draws it: texts, or pictures of one size.

        Raises:
            InputError: an episode's actions are not known: its state was saved without a ``render_mode``.
        """
        if self._drawing is None:
            logger.warn("render() needs a render_mode: gym.make_vec(..., render_mode='rgb_array')")
            return None
        self._check_ready()
        return self._drawing.pictures()

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self._batch.close()

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]  # as SyncVectorEnv
        """The environments' random number generators."""
        return tuple(self._generators[index] for index in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """What the environments' generators were seeded with."""
        return tuple(self._generators.seeds)

    # ---- beyond Gymnasium ------------------------------------------------------------------------

    @one_thread_at_a_time
    def draw_in(self, mode: Literal["rgb_array", "ansi"]) -> None:
        """Draw in this ``render_mode`` the episodes that begin from here on; it costs nothing until :meth:`render`."""
        self.render_mode = mode
        self._drawing = VectorDrawing(mode, self.layout, self._batch, self._counters)

    @one_thread_at_a_time
    def episode(self, number: int) -> Episode:
        """The present episode of an environment so far, as the single environment gives it."""
        shown = self._batch.devices[number] if self._drawing is None else self._drawing.device(number)
        return self._episode(number, shown)

    def _episode(self, number: int, device: Device) -> Episode:
        return Episode(
            problem=self._batch.arena(number).problem,
            seed=int(self._counters.seeds[number]),
            timeline=device.timeline,
            costs=device.costs,
            end_us=device.time_us,
            done=device.done,
            decisions=int(self._counters.decisions[number]),
            wall_s=time.perf_counter() - float(self._counters.began[number]),
            last=last_view(device),
        )

    @one_thread_at_a_time
    def save_state(self) -> VectorState:
        """The full state of all episodes and generators, to go back to with :meth:`restore_state`."""
        self._check_ready()
        return VectorState(
            environments=tuple(self._batch.save(index) for index in range(self.num_envs)),
            counters=self._counters.save(),
            rngs=self._generators.save(),
            rng_seeds=tuple(self._generators.seeds),
            layout=self.layout,
            actions=None if self._drawing is None else self._drawing.save(),
        )

    @one_thread_at_a_time
    def restore_state(self, state: VectorState) -> tuple[Observation, dict[str, Any]]:
        """Go back to ``state`` exactly: the same actions lead to the same observations, rewards, ends and episodes.

        Returns:
            the observations and infos that belong to the state.

        Raises:
            InputError: the state is of another number of environments, or of one with other actions or rows; or it was
                changed.
        """
        self._check_open()
        check_state(state, VectorState, self.layout)
        state.check(self.num_envs, self._counters.save())
        self._ready = False
        for index, saved in enumerate(state.environments):
            self._batch.load(index, saved)
        self._batch.run()
        self._counters.load(state.counters)
        self._generators.load(state.rngs, state.rng_seeds)
        if self._drawing is not None:
            self._drawing.load(state.actions)
        self._ready = True
        return self._observations(), self._infos(None)

    # ---- episodes --------------------------------------------------------------------------------

    def _begin_next(self, numbers: Iterable[int]) -> None:
        for index in numbers:
            self._begin(index, self._problem(index, self._scenarios.draw(index, self._generators[index])), None)
        self._batch.run()

    def _problem(self, index: int, scenario: Scenario) -> Problem:
        return for_environment(index, self._build, scenario)

    def _begin(self, index: int, problem: Problem, seed: int | None) -> None:
        """Set an environment to a start; without a seed, it is drawn as the single environment does."""
        if seed is None:
            seed = int(self._generators[index].integers(SEED_LIMIT))
        self._batch.begin(index, problem, seed, self._record)
        self._counters.begin(index, seed)
        if self._drawing is not None:
            self._drawing.begin(index)

    # ---- what is returned ------------------------------------------------------------------------

    def _observations(self) -> Observation:
        tables = self._batch.observations
        return NamedTables({name: table.copy() if self.copy else table for name, table in tables.items()})

    def _infos(self, rows: Rows | None) -> dict[str, Any]:
        return batched_infos(self._batch, self._counters.illegal, rows)

    # ---- refusals --------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("the vector environment is closed")

    def _check_ready(self) -> None:
        self._check_open()
        if not self._ready:
            raise ResetNeeded("call reset() first: the episodes have not begun, or a step failed")
