"""How long an exported policy takes to decide: the network alone, and from view to command.

Weights are random; what a decision costs does not depend on them.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.untrained import untrained_policy
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import begin
from gpusched_env.experiments.benchmarks.environments import RandomLoop
from gpusched_env.experiments.benchmarks.timing import Measurement, each, timed
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.showing import LazyView
from gpusched_env.scheduling.view import View

Kind = Literal["slots", "rule"]
KINDS: tuple[Kind, ...] = ("slots", "rule")


def network_decisions(scenario: str, states: int) -> dict[Kind, Measurement]:
    """Policies on observations in the middle of episodes, without Python between them."""
    loop = RandomLoop(states, 1, scenario=scenario)
    loop.play(200)
    masks = loop.env.action_masks()
    found: dict[Kind, Measurement] = {}
    for kind in KINDS:
        policy = untrained_policy(load_scenario(scenario), kind)
        policy.act(loop.observations, masks)
        found[kind] = timed(partial(policy.act, loop.observations, masks), states)
    return found


def scheduler_decisions(kind: Kind, scenario: str, states: int) -> Measurement:
    """The learned scheduler on the first views of an episode: show, encode, mask, decide, and make the command."""
    scheduler = LearnedScheduler(untrained_policy(load_scenario(scenario), kind))
    problem, device = build_problem(load_scenario(scenario)), make_device("compiled")
    begin(scheduler, problem, 0)
    view = device.reset(problem, 0)
    views: list[View] = []
    while view is not None and len(views) < states:
        views.append(view.complete() if isinstance(view, LazyView) else view)
        device.apply(scheduler.decide(view))
        view = device.advance()
    return timed(each(scheduler.decide, views), len(views))
