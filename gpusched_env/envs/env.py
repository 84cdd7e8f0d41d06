"""The Gymnasium environment: one agent schedules one GPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.devices import device_names
from gpusched_env.envs.drivers import Driver, Drivers
from gpusched_env.envs.observations import RUNNING_SLOTS, Observation, ObservationEncoder
from gpusched_env.envs.render import Renderer, RenderMode, detail_of
from gpusched_env.envs.setup import check_record, check_wait, episode_scenario, lay_out, offered
from gpusched_env.envs.single import Info, SingleEnv, action_number, check_render_mode, episode_summary
from gpusched_env.envs.state import EnvState, EpisodeProgress, EpisodeReplay, check_state
from gpusched_env.episodes.session import Episode, last_view
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.guards import Uncopied, one_thread_at_a_time
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View


class GpuSchedulingEnv(Uncopied, SingleEnv[dict[str, Any]]):
    """Decide when the kernels of several tenants are launched on one GPU, and what makes way for them.

    Every tenant's host issues kernels (or CUDA graphs, which are one launch each); each waits until the agent launches
    it, and then shares the GPU's SMs and memory bandwidth with whatever else runs. The agent is asked at decision
    epochs: a job arrived or completed, a kernel became ready or completed, a preemption took effect, or a
    wait ran out, and there is something to choose. It is asked again at the same instant until it waits.

    ### Actions
    `Discrete`. An agent launches, and reshapes kernels and synchronises tiles where a scenario offers that, unless
    `commands=[...]` asks for more of what it offers: at random it would confine, preempt and reject until
    hardly a job is done, and nothing can be learned from that. Action 0 waits for the next epoch, but `wait_us`
    at most. Then, in order, what is asked for:

    - *Launch* what stands in a pending slot, at one of the `stream_priorities`; where the scheduler has `streams` of
      its own, into its program's stream or into one of them. Pending slot `s * lookahead + k` has the `k`-th oldest
      pending launch of the tenant in slot `s`.
    - *Preempt* what stands in running slot `r`, in one of the ways of `preemption`. `save-part` is three actions: save
      the kernel's blocks on 1/4, 2/4 or 3/4 of the SMs, on the side away from its tenant's own partitions.
    - *Confine* the later launches of tenant `s` to 1/4, 2/4, 3/4 or all SMs (even rows count from SM rank 0, odd rows
      from the other end).
    - *Reject* a job of tenant `s`: the oldest that can be rejected, or the newest (if it is another).
    - *Throttle* tenant `s`, where it has no objective, as below.
    - *Reshape* what stands in pending slot `s * lookahead + k`: give it the first, second or third of its forms, in
      which it does the same work with other tiles or slices. Once, and before its tiles are synchronised.
    - *Synchronise* the tiles of what stands in pending slot `s * lookahead + k` with those of its producer: by row,
      by tile, strided by the steps through a row or by matrix of the producer, in one of four orders, without
      or with a wait kernel. Loads that need nothing of the producer come first. What needs a share of the tiles
      is synchronised by share, in place of row. A consumer cannot be launched before its producer or at a more
      urgent priority, and needs a wait kernel where its producer waits for something itself: it could take the
      slots that the producer needs, for ever.

    At one instant, a tenant's partition can be set once and a kernel preempted once, so that time passes whatever an
    agent does. `info["action_mask"]` (int8) and `action_masks()` (bool) tell which are legal; waiting always is. An
    illegal action counts as a wait.

    ### Actions that stand for an interval
    With `interval_us` above 0, as some scenarios have it unless told otherwise, launching is left to a dispatcher
    (`gpusched_env.planning.interval`) and the agent is asked at the first decision epoch that is `interval_us` after
    the last decision: a few hundred times an episode instead of ten thousand. Action 0: who goes first is up to the
    plan of all jobs (`gpusched_env.planning.plans`), about as under the scheduler `moore`. Then:

    - *Serve* tenant `s` first, with 0, 4 or 16 launches of all others together in flight. Its kernels have the most
      urgent stream priority, the others follow in the order of the plan, which is made anew when a job comes or goes.
      While at most one tenant with an objective has jobs, those without one fill what it leaves
      (`Knob.FILLS` in that module).
    - *Reject* as above, with `commands=["launch", "reject"]`; the agent is asked again at once, if there is something
      left to choose.

    Where a scenario's tenants can be throttled (`ServingColocated`), decisions are about *knobs* of tenants without an
    objective instead of who goes first, and action 0 lets the period pass with the knobs as they are. Whatever is
    pending is launched, of tenants with an objective at the most urgent stream priority and of all others at the least:

    - *Confine* tenant `s` to 1/4, 2/4 or 3/4 of the SMs, from the first one on or up to the last, or to all of
      them. Where the scenario has a `restart_us`, the tenant is started anew.
    - *Throttle* tenant `s`: it sleeps before each job for 0 to 16 times as long as one takes alone.

    All knobs can be set at one instant, each once; action 0 ends that. `gpusched/Colocation-v0` is the environment of
    `ServingColocated` by another id.

    Where CPU cores share the GPU's memory and their budgets can be set (`SharedMemory`), decisions are about these.
    Kernels are launched as they come. Action 0 lets the period pass:

    - *Set the budget* of the core in row `c` to 64 to 32768 cache misses a period, or to no regulation. It counts from
      the core's next tick on, and binds while a tenant's host holds the bandwidth lock and runs. A core without
      processes has no budgets to choose from.

    Where the scenario offers rejections, the dispatcher rejects jobs that the plan gives up, but not those of a tenant
    that the agent lets go first. With `commands=["launch"]` nobody rejects. Preemption has no actions at this grain.

    ### Observation
    `Dict` of float32 arrays of fixed shape within -1 to 1: tables `pending` (a row a pending slot), `running` and
    `tenants`, vector `device`; where decisions are about knobs also the table `knobs`, and where budgets of CPU cores
    can be set the table `cores`. Empty slots are rows of zeros;
    a table's first column, `PRESENT`, tells them apart. The columns (`gpusched_env.envs.features`) hold only what a
    scheduler on a real host can know.

    ### Reward
    Minus the growth of the scenario's cost over the step, so that the return is exactly minus the episode's
    cost: the weighted sum of the terms in `gpusched_env.scenarios.scenario.Reward`. The first step includes
    what accrued before the first decision, and the last one a charge for jobs that were not completed
    (`gpusched_env.scheduling.reward`). A rejected job costs at once what it would have cost if it had stayed
    undone until the horizon, and misses its objective: giving up a job never pays by itself, but makes room for
    others. In `Toy`, the cost is the turnaround in ms, batch with weight 1 and urgent with weight 3; both jobs
    are there at time 0:

    | action | meaning | time after it, us | reward |
    |---|---|---|---|
    | 1 | launch `batch_short` | 0 | 0 |
    | 2 | launch `urgent_narrow` | 0 | 0 |
    | 2 | launch `urgent_wide`, which will follow it | 0 | 0 |
    | 0 | wait | 100 | -(1 + 3) x 0.100 = -0.40 |
    | 0 | wait | 110 | -(1 + 3) x 0.010 = -0.04 |
    | 1 | launch `batch_long`; nothing is left to choose | 410 | -(1 + 3) x 0.100 - 1 x 0.200 = -0.60 |

    The return is -1.04: batch took 0.410 ms, urgent 0.210 ms, and 1 x 0.410 + 3 x 0.210 = 1.04.

    ### End
    Terminated when every tenant with a number of jobs has completed them or had them rejected; truncated at the
    horizon.

    ### Info
    `action_mask`, `time_us` (simulated), `elapsed_us` (of this step, for semi-Markov learners) and
    `illegal_actions` (so far); after `reset` also `seed`; at the end also `episode_metrics` (figures by name,
    undefined ones left out) and `reward_terms` (what each cost term contributed to the return). Where a wrapper cuts an
    episode, `summary()` gives these two (`gpusched_env.envs.single.EpisodeMetrics`).

    ### Arguments
    - `scenario`: name of a shipped scenario, path of a YAML file, or a `Scenario`.
    - `device`: name of a device, or a device object. Until `compiled`, the default, is built, `reference` plays the
      same; then the compiled one takes over. `GPUSCHED_COMPILE=wait` waits for it.
    - `render_mode`: `human`, `rgb_array` or `ansi`.
    - `slots`: tenant rows of observations and actions, at least the number of tenants (the default). A policy
      with more slots can face more tenants later.
    - `running_slots`: rows for launched kernels; further ones are not shown.
    - `wait_us`: longest wait of action 0. Without a limit, an agent that waits while nothing runs would
      sleep until the horizon.
    - `interval_us`: how long a decision stands, see above; 0: every launch is one. By default as the scenario says,
      most often 0.
    - `futures`: whether, with an interval, observations tell what is lost in sampled futures if one tenant or another
      goes first (the columns `AHEAD` and `AHEAD_ALONE`, otherwise 0). The more jobs are there, the longer that takes:
      up to several times as long as the rest of a step. The rule `serve` needs it.
    - `commands`: what an agent may do besides waiting, some of `launch`, `preempt`, `partition`, `reject`,
      `reshape`, `synchronise`, `throttle` and `budget`. By default it launches, reshapes and synchronises only; where
      decisions are about knobs or budgets it sets these. What else a scenario offers to schedulers stands in its data
      sheet.
    - `record`: what the timeline keeps (`jobs`, `kernels`, `blocks`); by default `jobs`. Pictures and films of an
      environment with a `render_mode` (`env.unwrapped.episode().animate("x.gif")`) need no more: the simulated devices
      play the episode again from its seed and actions, and record it then.
    - any field of the scenario with a new value (`gpu`, `tenants`, `horizon_us`, `decision_us`, `reward`, ...),
      as `gpusched_env.scenarios.scenario.override` takes them. `InputError` names what is not acceptable.

    ### Version history
    - v0: first release. Before it, an agent was offered all commands of a scenario, and in `Serving...` and
      `PreemptiveServing` asked for every launch: `interval_us=0` and `commands=[...]` as in the data sheet give that.
    - v1, of `DependentKernelsShared`, `KernelGraph`, `ServingFleetSlice`, `ServingLanguageModel` and `ServingOverload`:
      the second version of the laws (`physics=2`), by which kernels recorded on another GPU take 0.3 to 1.1 times as
      long. The rates and objectives of `ServingOverload` follow. v0 plays as before.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | Path | Scenario = "InferenceBesideTraining",
        *,
        device: str | Device = "compiled",
        render_mode: RenderMode | None = None,
        slots: int | None = None,
        running_slots: int = RUNNING_SLOTS,
        wait_us: float = 100.0,
        interval_us: float | None = None,
        futures: bool = False,
        record: Detail | None = None,
        **overrides: Any,
    ) -> None:
        check_render_mode(render_mode, self.metadata["render_modes"])
        check_record(record)
        self.scenario, interval_us, rejects = offered(scenario, overrides, interval_us)
        self.layout = lay_out(
            self.scenario,
            slots=slots,
            running_slots=running_slots,
            interval_us=interval_us,
            rejects=rejects,
            futures=futures,
        )
        self.encoder = ObservationEncoder.of(self.layout)
        self.observation_space = self.encoder.space()
        self.action_space = self.layout.space()
        self.render_mode = render_mode
        self.wait_us = check_wait(wait_us)
        self.problem = build_problem(self.scenario)
        self._drivers = Drivers(device, self.layout, self.encoder, self.wait_us)
        self._driver: Driver = self._drivers()
        self.entry = self._driver.entry
        self._renderer = Renderer(render_mode) if render_mode is not None else None
        self._record: Detail = record if record is not None else detail_of(render_mode)
        self._replay: EpisodeReplay | None = None
        if record is None and render_mode is not None and device in device_names():
            self._replay, self._record = EpisodeReplay(self._drivers, self._record), "jobs"
        self._run: EpisodeProgress | None = None
        self._began = 0.0

    @one_thread_at_a_time
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode and run to its first decision.

        Args:
            seed: the episode's seed; the same seed gives the same arrivals and durations, here and in
                :func:`~gpusched_env.episodes.session.run_episode`. ``None``: drawn from ``np_random``.
            options: ``{"scenario": {...}}`` replaces fields of the scenario for this episode only, as
                :func:`~gpusched_env.scenarios.scenario.override` does. What changes the action space or
                needs more tenant rows than ``slots`` is refused.

        Returns:
            the first observation, and ``info`` as in :meth:`step` with the episode's ``seed``.

        Raises:
            InputError: unknown options, or an override that is not valid here.
        """
        problem = self.problem
        if options:
            problem = build_problem(episode_scenario(self.scenario, options, self.layout))
        seed = self._draw_seed(seed)
        self._began = time.perf_counter()
        driver = self._driver = self._drivers.fastest(self._driver, None, self._record)
        driver.reset(problem, seed, self._record)
        self._run = EpisodeProgress(problem, seed, driver.time_us, driver.time_us)
        if self.render_mode == "human":
            self.render()
        info = self._info(self._run)
        info["seed"] = seed
        return driver.observe(), info

    @one_thread_at_a_time
    def step(self, action: int | np.integer[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out ``action`` and run to the next decision, or to the end.

        An illegal action counts as a wait; ``info["illegal_actions"]`` tells how many there were.

        Returns:
            observation, reward, terminated, truncated, info, as the class describes them.

        Raises:
            ResetNeeded: the episode has not begun or is over.
            InputError: not an action of the space.
        """
        run = self._run
        if run is None or run.over:
            raise ResetNeeded("call reset() first: the episode has not begun or is over")
        action = action_number(action, self.layout.n)
        driver = self._driver = self._drivers.fastest(self._driver, run, self._record)
        if driver.deciding:
            driver.step(action)
            run.actions.append(action)
        cost, now_us = driver.cost, driver.time_us
        reward = run.cost - cost
        run.cost = cost
        run.elapsed_us = now_us - run.time_us
        run.time_us = now_us
        run.over = not driver.deciding
        info = self._info(run)
        terminated = False
        if run.over:
            info.update(self.summary())
            terminated = self.device.done
        if self.render_mode == "human":
            self.render()
        return driver.observe(), reward, terminated, run.over and not terminated, info

    @one_thread_at_a_time
    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(action_space.n,)`` (the name that sb3-contrib calls)."""
        self._current()
        return self._driver.mask.copy()

    @one_thread_at_a_time
    def episode(self) -> Episode:
        """The present episode so far, for traces, reports, metrics and films: as it is drawn, if it is."""
        return self._episode(self._drawn())

    @one_thread_at_a_time
    def summary(self) -> dict[str, Any]:
        """``episode_metrics`` and ``reward_terms`` of the episode so far, as ``info`` has them at its end.

        For episodes that a wrapper cuts (:class:`~gpusched_env.envs.single.EpisodeMetrics`).
        """
        return episode_summary(self._episode(self._driver))

    def _episode(self, driver: Driver) -> Episode:
        run, device = self._current(), driver.device
        return Episode(
            problem=run.problem,
            seed=run.seed,
            timeline=device.timeline,
            costs=device.costs,
            end_us=float(device.time_us),
            done=bool(device.done),
            decisions=len(run.actions),
            wall_s=time.perf_counter() - self._began,
            last=last_view(device),
        )

    def _drawn(self) -> Driver:
        """What has recorded all that pictures show."""
        run = self._current()
        if self._replay is None:
            return self._driver
        return self._replay.after(run.problem, run.seed, run.actions, self._driver.time_us)

    @property
    @one_thread_at_a_time
    def view(self) -> View:
        """What the next action is decided on, as schedulers see it."""
        self._current()
        return self._driver.view

    @property
    def device(self) -> Device:
        """The device behind the environment."""
        return self._driver.device

    @one_thread_at_a_time
    def save_state(self) -> EnvState:
        """The full state of the episode and of ``np_random``, to go back to with :meth:`restore_state`."""
        return EnvState(self._current().copy(), self._driver.save(), self.layout, self.np_random.bit_generator.state)

    @one_thread_at_a_time
    def restore_state(self, state: EnvState) -> tuple[Observation, dict[str, Any]]:
        """Go back to ``state`` exactly: the same actions lead to the same observations, rewards and times.

        Returns:
            the observation and ``info`` that belong to the state.

        Raises:
            InputError: the state is of an environment with other actions, rows or another device.
        """
        check_state(state, EnvState, self.layout)
        self._driver = self._drivers.for_state(self._driver, state.driver)
        self._driver.restore(state.driver)
        self.np_random.bit_generator.state = state.rng
        self._run = state.run.copy()
        return self._driver.observe(), self._info(self._run)

    @one_thread_at_a_time
    def render(self) -> Any:
        """The present state in the way of ``render_mode``.

        ``ansi``: text, as a string. ``rgb_array``: who waits, what is on the SMs, and how it came there, uint8 of
        shape ``(height, width, 3)``; after the last step the last moment of work. ``human``: the same picture in a
        window, drawn anew after every step; without Matplotlib or a display the text is printed instead.
        """
        if not self._draws() or self._renderer is None:
            return None
        run, drawn = self._current(), self._drawn()
        return self._renderer.draw(run.problem, drawn.device.timeline, drawn.view, over=run.over)

    def close(self) -> None:
        """Close the window, if there is one; may be called again."""
        if self._renderer is not None:
            self._renderer.close()

    def _info(self, run: EpisodeProgress) -> Info:
        return Info(
            action_mask=self._driver.mask.astype(np.int8),
            time_us=run.time_us,
            elapsed_us=run.elapsed_us,
            illegal_actions=self._driver.illegal,
        )

    def _current(self) -> EpisodeProgress:
        if self._run is None:
            raise ResetNeeded("call reset() first")
        return self._run
