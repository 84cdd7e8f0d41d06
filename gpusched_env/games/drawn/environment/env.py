"""The environment of drawn scenarios."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.devices import make_device
from gpusched_env.envs.features import FLAG, RATIO, SHARE, Feature
from gpusched_env.envs.observations import ObservationEncoder
from gpusched_env.envs.single import SIZE, GameEnv, action_number, check_render_mode, columns_picture, reset_option
from gpusched_env.episodes.session import begin
from gpusched_env.errors import InputError
from gpusched_env.games.drawn.environment.rules import RULES, ChosenRule
from gpusched_env.games.drawn.problems.drawing import Drawn
from gpusched_env.games.drawn.problems.splits import SPLITS, TRAIN, drawn
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.guards import one_thread_at_a_time
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.view import View

SLOTS: Final = 12
"""Rows of tenants: the most that a scenario has."""
INTERVAL_US: Final = 1000.0
DRAWS: Final = 2**20
"""Scenarios of a split that are trained on."""
KEPT: Final = 0.8
"""Of a rule's mean cost, when it has decided once more."""
SCALE: Final = 0.01
"""Share of what is at stake that an interval costs, about."""
COLOUR: Final = (0, 114, 178)
Observation = dict[str, NDArray[np.float32]]


class RuleFeature(Feature):
    """Table ``rules``: a row for each action."""

    LAST = ("1 if it decided last", FLAG, 0, 1, "the agent's actions")
    USED = ("intervals that it decided so far, over 4", RATIO, 0, 1, "the agent's actions")
    COST = ("mean growth of the cost while it did, in hundredths of what is at stake", RATIO, 0, 1, "info['cost']")


class OfferFeature(Feature):
    """Vector ``offer``: what is known beforehand of a scenario in all."""

    REJECT = ("1 if jobs can be rejected", FLAG, 0, 1, "knowledge.commands")
    KNOWN = ("share of kernels whose profile is told", SHARE, 0, 1, "knowledge.kernels")
    ENGINES = ("share of tenants that serve requests in batches", SHARE, 0, 1, "knowledge.tenants")


@dataclass(slots=True)
class UnderWay:
    """An episode under way."""

    name: str
    device: Device
    rules: ChosenRule
    view: View | None
    problem: Problem
    seed: int
    at_stake: float
    offer: NDArray[np.float32]
    cost: float = 0.0
    used: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(RULES)))
    means: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(RULES)))
    history: list[int] = field(default_factory=list)
    """Actions so far."""

    @property
    def share(self) -> float:
        """The cost so far, of what is at stake."""
        return self.cost / self.at_stake

    def count_cost(self) -> float:
        """Bring the cost up to date; returns by how much of what is at stake it has grown."""
        before = self.share
        self.cost = total_cost(self.problem, cost_terms(self.problem, self.device.costs))
        return self.share - before


class DrawnEnv(GameEnv[Observation, UnderWay]):
    """Each episode another scenario; say, a millisecond at a time, by which rule tenants share the GPU.

    GPUs, two to twelve tenants, networks, arrivals, load, objectives, prices, hosts and profiles are drawn
    (`gpusched_env.games.drawn.problems`). No single rule is good at all of them, and which one is good has to be found
    out from what is known of a scenario, and from what happens in it.

    ### Action
    `Discrete`: a row of table `rules`, by the names in `env.unwrapped.rules`. That scheduler decides about launches,
    rejections and preemptions until the next decision. Who always gives one action does what that scheduler does alone.

    ### Observation
    `Dict` of float32 arrays of the same shape in each scenario, within -1 to 1. `tenants` (12 rows), `pending`,
    `running` and `device` have the columns of all environments of scenarios, but no plan: rows without a tenant are
    zeros, and the column `PRESENT` tells them apart. `rules`: what each one has cost so far. `offer`: what can be done,
    and how much is known. No arrival rate is told, and durations only where the scenario has profiles.

    ### Reward
    Minus the growth of the cost, over what is at stake in the scenario. The return is minus the episode's cost over
    that, so that runs with the same `scenario` and seed can be compared step by step.

    ### End
    Truncated at the scenario's horizon, up to half a second of simulated time: a hundred decisions or so.

    ### Info
    `cost` (so far, in the scenario's units), `time_us`; after `reset` also `scenario` and `seed`; at the end also
    `episode_metrics`.

    ### Arguments
    - `split`: a split of `gpusched_env.games.drawn.problems.splits`, of whose scenarios each episode draws one; or the
      name of a single scenario, `draws-17`.
    - `count`: from how many of its first scenarios; 200 are frozen.
    - `repeats`: so many episodes in a row are of one scenario, with other arrivals each, unless a seed or a scenario is
      given to `reset`. To draw one takes about half as long as to play it.
    - `interval_us`: how long a decision stands.
    - `device`: of the simulation.
    - `render_mode`: `rgb_array` or `ansi`.

    ### Version history
    - v0: first release.
    """

    rules = RULES
    actions = len(RULES)
    columns = RuleFeature
    columns_note = (
        "Columns of `rules`, a row for each action. Vector `offer`: "
        + "; ".join(f"{feature.name}, {feature.meaning}" for feature in OfferFeature)
        + "."
    )

    def __init__(
        self,
        split: str = TRAIN,
        *,
        count: int = DRAWS,
        repeats: int = 1,
        interval_us: float = INTERVAL_US,
        device: str = "compiled",
        render_mode: Literal["rgb_array", "ansi"] | None = None,
    ) -> None:
        check_render_mode(render_mode, self.metadata["render_modes"])
        if split not in SPLITS:
            drawn(split)
        if not interval_us > 0.0:
            raise InputError(f"interval_us is {interval_us}, must be above 0")
        for name, number in (("count", count), ("repeats", repeats)):
            if number < 1:
                raise InputError(f"{name} is {number}, must be at least 1")
        self.split, self.count, self.repeats, self.interval_us = split, count, repeats, interval_us
        self._played: tuple[str, Drawn, Problem, int] | None = None
        """Name, scenario and problem of the last episode, and how many in a row were of it."""
        self._device, self.render_mode = device, render_mode
        self._encoder = ObservationEncoder(SLOTS, 8)
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {
                **self._encoder.space().spaces,
                "rules": spaces.Box(0.0, 1.0, (len(RULES), len(RuleFeature)), np.float32),
                "offer": spaces.Box(0.0, 1.0, (len(OfferFeature),), np.float32),
            }
        )
        self.action_space = spaces.Discrete(len(RULES))

    @one_thread_at_a_time
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw a scenario, and run to its first decision.

        Args:
            seed: of the scenario that is drawn, and of its arrivals; ``None``: drawn from ``np_random``.
            options: ``{"scenario": name}`` for this episode only: then the seed is of the arrivals alone, as in a
                ranking.

        Returns:
            the first observation, and ``info`` as the class describes it.

        Raises:
            InputError: unknown options, or no such scenario.
        """
        again = seed is None and not options
        seed = self._draw_seed(seed)
        drawn_name = f"{self.split}-{int(self.np_random.integers(self.count))}" if self.split in SPLITS else self.split
        if again and self._played is not None and self._played[-1] < self.repeats:
            name, found, own, times = self._played
        else:
            name, times = reset_option(options, "scenario", drawn_name), 0
            found = drawn(name)
            own = found.problem()
        self._played = name, found, own, times + 1
        rules, device = ChosenRule(), make_device(self._device)
        problem = problem_for(rules, own)
        begin(rules, problem, seed)
        view = device.reset(problem, seed, record="jobs")
        self._run = UnderWay(name, device, rules, view, problem, seed, found.at_stake, offer_of(own.knowledge))
        self._run.count_cost()
        return self._observe(), {**self._info(), "scenario": name, "seed": seed}

    @one_thread_at_a_time
    def step(self, action: int | np.integer[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Let a rule decide for an interval.

        Returns:
            observation, reward, terminated, truncated, info, as the class describes them.

        Raises:
            ResetNeeded: the episode has not begun or is over.
            InputError: not an action of the space.
        """
        run = self._current()
        if run.view is None:
            raise ResetNeeded("call reset() first: the episode is over")
        rule = action_number(action, len(RULES))
        run.rules.choose(rule, run.view.time_us + self.interval_us)
        while run.view is not None and run.view.time_us < run.rules.until_us:
            run.device.apply(run.rules.decide(run.view))
            run.view = run.device.advance()
        grown = run.count_cost()
        run.used[rule] += 1
        run.means[rule] += (1.0 - (KEPT if run.used[rule] > 1 else 0.0)) * (grown - run.means[rule])
        run.history.append(rule)
        over = run.view is None
        done = over and run.device.done
        return self._observe(), -grown, done, over and not done, self._info() | (self.summary() if over else {})

    @one_thread_at_a_time
    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step: all, shape ``(rules,)``."""
        return np.ones(len(RULES), np.bool_)

    @one_thread_at_a_time
    def summary(self) -> dict[str, Any]:
        """``episode_metrics`` of the episode so far, as ``info`` has them at its end."""
        run = self._current()
        return {"episode_metrics": {"cost": run.cost, "share": run.share, "decisions": float(len(run.history))}}

    @one_thread_at_a_time
    def render(self) -> Any:
        """``ansi``: text, as a string. ``rgb_array``: the rule of each decision so far, as its row, uint8."""
        run = self._current()
        if not self._draws():
            return None
        if self.render_mode == "ansi":
            last = RULES[run.history[-1]] if run.history else "none"
            return f"{run.problem.scenario.summary}\n{run.device.time_us / 1e3:.1f} ms, cost {run.cost:.4g}, {last}\n"
        return _picture(run)

    def _observe(self) -> Observation:
        run = self._current()
        view = run.view if run.view is not None else run.device.view()
        rules = np.zeros((len(RULES), len(RuleFeature)), np.float32)
        if run.history:
            rules[run.history[-1], RuleFeature.LAST] = 1.0
        rules[:, RuleFeature.USED] = run.used / (run.used + 4.0)
        cost = np.maximum(run.means, 0.0) / SCALE
        rules[:, RuleFeature.COST] = cost / (1.0 + cost)
        return {**self._encoder.encode(view), "rules": rules, "offer": run.offer.copy()}

    def _info(self) -> dict[str, Any]:
        run = self._current()
        return {"cost": run.cost, "time_us": float(run.device.time_us)}


def offer_of(known: Knowledge) -> NDArray[np.float32]:
    """Vector ``offer`` of a scenario."""
    told = [np.isfinite(kernel.duration_us) for kernel in known.kernels]
    engines = [tenant.max_batch > 1 for tenant in known.tenants]
    return np.array(["reject" in known.commands, np.mean(told), np.mean(engines)], np.float32)


def _picture(run: UnderWay) -> NDArray[np.uint8]:
    """Bars from left to right, a decision each; their heights are rows of the table of rules."""
    width, height = SIZE[1], SIZE[0]
    if not run.history:
        return columns_picture(())
    place = np.arange(width) * len(run.history) // width
    return columns_picture([((np.array(run.history)[place] + 1) * height // len(RULES), COLOUR)])
