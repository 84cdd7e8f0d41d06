"""A trained agent beside the strongest hand-written rule, in one line for each scenario and set of workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpusched_env.baselines.tuning import tuning_for
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.statistics import Interval, Standing, standings
from gpusched_env.experiments.lib.trained import is_learned
from gpusched_env.experiments.ranking.page import bound_standing, workloads_of
from gpusched_env.experiments.ranking.result import Ranking

Verdict = Literal["better", "worse", "no difference shown"]
ORDER = ("own", "held_out", "train")
"""Of the sets of workloads on the page."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One agent on one scenario and set of workloads."""

    ranking: Ranking
    """The result file with the most seeds that it is in."""
    scenario: str
    agent: Standing
    """Against the chosen rule."""
    best: Standing
    """That rule: chosen on training workloads with tuned options, or without such a search on the same episodes."""
    hindsight: Standing
    """The agent against the cheapest of the rules that were ranked, on these very episodes: no rule could be chosen by
    that beforehand."""
    cheapest: str
    """That rule."""
    bound: Standing | None

    @property
    def verdict(self) -> Verdict:
        """What the interval of the difference of mean costs says."""
        return verdict(self.agent.against)


def verdict(difference: Interval) -> Verdict:
    """Lower costs are better; an interval that has 0 in it shows nothing."""
    if difference.high is not None and difference.high < 0.0:
        return "better"
    if difference.low is not None and difference.low > 0.0:
        return "worse"
    return "no difference shown"


def grouped(rankings: Sequence[Ranking]) -> dict[str, dict[str, list[Ranking]]]:
    """By scenario and by set of workloads, the one with most seeds first."""
    found: dict[str, dict[str, list[Ranking]]] = {}
    for ranking in sorted(rankings, key=lambda r: (r.gpu or "", ORDER.index(r.workloads), -len(r.seeds))):
        for scenario in ranking.variants:
            found.setdefault(scenario, {}).setdefault(workloads_of(ranking), []).append(ranking)
    given = [scenario for ranking in rankings for scenario in ranking.variants]
    return {scenario: found[scenario] for scenario in dict.fromkeys(given)}


def summaries(rankings: Sequence[Ranking]) -> list[Summary]:
    """Every agent on every scenario and set of workloads that it was ranked on beside a hand-written scheduler.

    Raises:
        InputError: the rule that the agent is judged by is missing from its ranking, or episodes are.
    """
    return [
        _summary(scenario, agent, group)
        for scenario, groups in grouped(rankings).items()
        for group in groups.values()
        for agent in dict.fromkeys(name for ranking in group for name in ranking.schedulers if is_learned(name))
        if any(not is_learned(name) for name in _with(group, agent).schedulers)
    ]


def _summary(scenario: str, agent: str, group: list[Ranking]) -> Summary:
    ranking = _with(group, agent)
    tuning = tuning_for(scenario)
    if tuning is not None and tuning.chosen not in ranking.schedulers:
        raise InputError(
            f"{scenario}, {workloads_of(ranking)}: {agent} was not ranked beside {tuning.chosen}, the best rule on "
            "training workloads; rank it there too"
        )
    best = ranking.reference(scenario)
    for other in group if tuning is None else ():
        elsewhere = other.reference(scenario)
        if elsewhere not in ranking.schedulers:
            raise InputError(
                f"{scenario}, {workloads_of(ranking)}: {agent} was ranked on {counted(len(ranking.seeds), 'seed')} "
                f"beside {best}, but {elsewhere} is the best of {counted(len(other.seeds), 'seed')}; rank it there too"
            )
    found = {standing.scheduler: standing for standing in ranking.standings(scenario)}
    cheapest = ranking.cheapest(scenario)
    costs = ranking.costs(scenario, ranking.devices[0])
    two = standings({agent: costs[agent], cheapest: costs[cheapest]}, cheapest)
    return Summary(
        ranking=ranking,
        scenario=scenario,
        agent=found[agent],
        best=found[best],
        hindsight=next(standing for standing in two if standing.scheduler == agent),
        cheapest=cheapest,
        bound=bound_standing(ranking, scenario),
    )


def _with(group: list[Ranking], agent: str) -> Ranking:
    """The first of ``group``, which has the most seeds, with ``agent`` in it."""
    return next(ranking for ranking in group if agent in ranking.schedulers)
