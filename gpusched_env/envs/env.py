"""The Gymnasium environment: one agent schedules one GPU."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.devices import make_device
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import Observation, ObservationEncoder, Selection, select
from gpusched_env.envs.state import EnvState, Run
from gpusched_env.envs.summary import flat_metrics, reward_terms
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.problem import Problem, build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, override
from gpusched_env.scheduling.commands import Wait
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.metrics import episode_metrics
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.session import Episode
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View

SEED_LIMIT = 2**31
"""Episode seeds drawn by the environment are below this."""


class GpuSchedulingEnv(gymnasium.Env[dict[str, Any], np.int64]):
    """Decide when the kernels of several tenants are launched on one GPU, and what makes way for them."""

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | Path | Scenario = "InferenceBesideTraining",
        *,
        device: str | Device = "reference",
        render_mode: str | None = None,
        slots: int | None = None,
        running_slots: int = 8,
        wait_us: float = 100.0,
        record: Detail | None = None,
        **overrides: Any,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = self.metadata["render_modes"]
            raise InputError(f"render_mode is {render_mode!r}; {did_you_mean(render_mode, known)}")
        if running_slots < 1:
            raise InputError(f"running_slots is {running_slots}, must be at least 1")
        if not wait_us > 0:
            raise InputError(f"wait_us is {wait_us}, must be positive")
        base = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        self.scenario = override(base, **overrides) if overrides else base
        tenants = len(self.scenario.tenants)
        if slots is not None and slots < tenants:
            raise InputError(f"slots is {slots}, but scenario {self.scenario.name} has {tenants} tenants")
        self.encoder = ObservationEncoder(slots if slots is not None else tenants, running_slots)
        self.layout = self._layout(self.scenario)
        self.observation_space = self.encoder.space()
        self.action_space = self.layout.space()
        self.render_mode = render_mode
        self.wait_us = wait_us
        self.problem = build_problem(self.scenario)
        self.device: Device = make_device(device) if isinstance(device, str) else device
        drawn = render_mode in ("human", "rgb_array")
        self._record: Detail = record if record is not None else ("blocks" if drawn else "jobs")
        self._run: Run | None = None
        self._began = 0.0
        self._screen: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode and run to its first decision.

        Args:
            seed: the episode's seed; the same seed gives the same arrivals and durations, here and in
                :func:`~gpusched_env.scheduling.session.run_episode`. ``None``: drawn from ``np_random``.
            options: ``{"scenario": {...}}`` replaces fields of the scenario for this episode only, as
                :func:`~gpusched_env.scenarios.scenario.override` does. What changes the action space or
                needs more tenant rows than ``slots`` is refused.

        Returns:
            the first observation, and ``info`` as in :meth:`step` with the episode's ``seed``.

        Raises:
            InputError: unknown options, or an override that is not valid here.
        """
        problem = self._problem(options)
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(SEED_LIMIT))
        self._began = time.perf_counter()
        view = self.device.reset(problem, seed, record=self._record)
        now = view if view is not None else self.device.view()
        selection, mask = self._look(now, deciding=view is not None)
        self._run = Run(problem, seed, now, selection, mask, deciding=view is not None, elapsed_us=now.time_us)
        if self.render_mode == "human":
            self.render()
        return self._observe(self._run), {**self._info(self._run), "seed": seed}

    def step(self, action: int | np.integer[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out ``action`` and run to the next decision, or to the end.

        An illegal action counts as a wait; ``info["illegal_actions"]`` tells how many there were.

        Returns:
            observation, reward, terminated (the workload is done), truncated (the horizon came first)
            and ``info``: ``action_mask`` (int8, legal actions of the next step), ``time_us`` (simulated
            time), ``elapsed_us`` (of this step) and ``illegal_actions``; at the end also
            ``episode_metrics`` (figures by name, undefined ones left out) and ``reward_terms`` (what
            each cost term contributed to the return).

        Raises:
            ResetNeeded: the episode has not begun or is over.
            InputError: not an action of the space.
        """
        run = self._run
        if run is None or run.over:
            raise ResetNeeded("call reset() first: the episode has not begun or is over")
        action = int(action)
        if not 0 <= action < self.layout.n:
            raise InputError(f"action {action} is not in 0..{self.layout.n - 1}")
        before_us = run.view.time_us
        if run.deciding:
            self._carry_out(run, action)
        terms = cost_terms(run.problem, self.device.costs)
        cost = total_cost(run.problem, terms)
        reward = float(run.cost - cost)
        run.cost = cost
        run.elapsed_us = float(run.view.time_us - before_us)
        run.over = not run.deciding
        info = self._info(run)
        if run.over:
            info["episode_metrics"] = flat_metrics(episode_metrics(self.episode()))
            info["reward_terms"] = reward_terms(run.problem, terms)
        if self.render_mode == "human":
            self.render()
        terminated = run.over and bool(self.device.done)
        return self._observe(run), reward, terminated, run.over and not terminated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(action_space.n,)`` (the name that sb3-contrib calls)."""
        return self._current().mask.copy()

    def episode(self) -> Episode:
        """The present episode so far, for traces, reports and metrics."""
        run = self._current()
        return Episode(
            problem=run.problem,
            seed=run.seed,
            timeline=self.device.timeline,
            costs=self.device.costs,
            end_us=float(self.device.time_us),
            done=bool(self.device.done),
            decisions=run.commands,
            wall_s=time.perf_counter() - self._began,
        )

    @property
    def view(self) -> View:
        """What the next action is decided on, as schedulers see it."""
        return self._current().view

    def save_state(self) -> EnvState:
        """The full state of the episode and of ``np_random``, to go back to with :meth:`restore_state`."""
        return EnvState(replace(self._current()), self.device.snapshot(), self.np_random.bit_generator.state)

    def restore_state(self, state: EnvState) -> tuple[Observation, dict[str, Any]]:
        """Go back to ``state`` exactly: the same actions lead to the same observations, rewards and times.

        Returns:
            the observation and ``info`` that belong to the state.

        Raises:
            InputError: the state is of an environment with another action space.
        """
        if state.run.mask.size != self.layout.n:
            raise InputError(f"the state has {state.run.mask.size} actions, this environment {self.layout.n}")
        self.device.restore(state.device)
        self.np_random.bit_generator.state = state.rng
        self._run = replace(state.run)
        return self._observe(self._run), self._info(self._run)

    def render(self) -> Any:
        """The state in the way of ``render_mode``.

        ``ansi``: text, as a string. ``rgb_array``: the recent timeline of streams and SMs, uint8 of shape
        ``(height, width, 3)``. ``human``: the same picture in a window, drawn anew after every step;
        without a display the text is printed instead.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render_mode: gym.make(..., render_mode='rgb_array')")
            return None
        from gpusched_env.envs import render

        run = self._current()
        if self.render_mode == "ansi":
            return render.text(run.problem, run.view)
        image = render.picture(run.problem, run.view, self.device.timeline)
        if self.render_mode == "rgb_array":
            return image
        if self._screen is None:
            self._screen = render.open_screen()
        self._screen.show(image, lambda: render.text(run.problem, run.view))
        return None

    def close(self) -> None:
        """Close the window, if there is one; may be called again."""
        if self._screen is not None:
            self._screen.close()
            self._screen = None

    def _carry_out(self, run: Run, action: int) -> None:
        if run.mask[action]:
            command = self.layout.decode(action, run.view, wait_us=self.wait_us, selection=run.selection)
        else:
            command = Wait(run.view.time_us + self.wait_us)
            run.illegal += 1
        self.device.apply(command)
        run.commands += 1
        view = self.device.advance()
        run.deciding = view is not None
        run.view = view if view is not None else self.device.view()
        run.selection, run.mask = self._look(run.view, deciding=run.deciding)

    def _look(self, view: View, *, deciding: bool) -> tuple[Selection, NDArray[np.bool_]]:
        selection = select(view, self.encoder.slots, self.encoder.running_slots)
        if deciding:
            return selection, self.layout.mask(view, selection)
        only_wait = np.zeros(self.layout.n, np.bool_)
        only_wait[0] = True
        return selection, only_wait

    def _observe(self, run: Run) -> Observation:
        return self.encoder.encode(run.view, run.selection)

    def _info(self, run: Run) -> dict[str, Any]:
        return {
            "action_mask": run.mask.astype(np.int8),
            "time_us": float(run.view.time_us),
            "elapsed_us": run.elapsed_us,
            "illegal_actions": run.illegal,
        }

    def _problem(self, options: dict[str, Any] | None) -> Problem:
        if not options:
            return self.problem
        for key in options:
            if key != "scenario":
                raise InputError(f"reset option {key!r} is not known; {did_you_mean(str(key), ('scenario',))}")
        scenario = override(self.scenario, **options["scenario"])
        if len(scenario.tenants) > self.encoder.slots:
            raise InputError(
                f"reset option scenario: {len(scenario.tenants)} tenants do not fit into {self.encoder.slots} slots; "
                "make the environment with more slots"
            )
        if self._layout(scenario) != self.layout:
            raise InputError(
                "reset option scenario: commands, stream_priorities and preemption shape the action space; "
                "give them to gym.make instead"
            )
        return build_problem(scenario)

    def _layout(self, scenario: Scenario) -> ActionLayout:
        return ActionLayout.of(scenario, self.encoder.slots, self.encoder.running_slots)

    def _current(self) -> Run:
        if self._run is None:
            raise ResetNeeded("call reset() first")
        return self._run
