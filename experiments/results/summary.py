"""Who is best on a scenario, as the README, the leaderboard and the page of results say it: one row, from one file.

A scenario and set of workloads has one file that counts (:func:`of_record`). Its row has the cheapest published system,
the cheapest other rule, CUDA's own priorities and the trained agent, all on the same episodes. The agent is judged by
the cheapest of all that were not told the truth, defaults and tuned ones alike: that rule is chosen on the very
episodes, so that chance helps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from gpusched_env.agents import shipped
from gpusched_env.agents.shipped import origin
from gpusched_env.baselines.tuning import tuning_for
from gpusched_env.display.table import NONE
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.statistics import FEW_SEEDS, RankStanding
from gpusched_env.experiments.lib.trained import LEARNED, is_learned, is_published
from gpusched_env.experiments.ranking.page import DIFFERENCE, workloads_of
from gpusched_env.experiments.ranking.result import Ranking

Kind = Literal["published", "rule", "agent", "told the truth"]
SHOWN: Final[tuple[Kind, ...]] = ("published", "rule", "agent")
PRIORITIES: Final = "priority-streams"
"""The GPU's own means for urgent work, beside which a scheduler has to show what it adds."""
COST: Final = "{:.3f}"
"""Of costs: those of scenarios below each other have as many decimals."""
ORDER: Final = ("own", "held_out", "train")
"""The order of the sets of workloads on a page."""
HEADS: Final = (
    "scenario", "workloads", "episodes", "best published", "best rule", PRIORITIES, "agent", "agent against the best",
    "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """One scenario and set of workloads, of the file that counts for it."""

    file: str
    ranking: Ranking
    scenario: str

    @cached_property
    def everybody(self) -> list[RankStanding]:
        """The cheapest first, against the cheapest hand-written scheduler that was not told the truth."""
        return self.ranking.standings(self.scenario)

    def kind(self, scheduler: str) -> Kind:
        """What sort of scheduler one of the ranking is."""
        if scheduler in self.ranking.clairvoyant:
            return "told the truth"
        if is_learned(scheduler):
            return "agent"
        return "published" if is_published(scheduler) else "rule"

    def best(self, kind: Kind) -> RankStanding | None:
        """The cheapest of a kind."""
        return next((one for one in self.everybody if self.kind(one.scheduler) == kind), None)

    @property
    def priorities(self) -> RankStanding | None:
        """CUDA's priorities; ``None`` where they were not ranked."""
        return next((one for one in self.everybody if one.scheduler == PRIORITIES), None)

    @property
    def strongest(self) -> str:
        """The hand-written scheduler that the agent is judged by."""
        return self.ranking.cheapest(self.scenario)

    def called(self, scheduler: str) -> str:
        """A scheduler as a row names it: the shipped agent by how it came about, others in full with their options."""
        policy = shipped.shipped_scenarios().get(self.scenario)
        if scheduler == LEARNED and policy is not None:
            return origin(shipped.FOLDER / f"{policy}.npz")
        return scheduler if is_learned(scheduler) else f"`{scheduler}`"

    @property
    def verdict(self) -> str:
        """What the interval of the difference says, in words; who is better where that is not the agent."""
        agent = self.best("agent")
        if agent is None:
            return NONE
        if agent.against.high is not None and agent.against.high < 0.0:
            return "better"
        if agent.against.low is not None and agent.against.low > 0.0:
            return f"worse than `{self.strongest}`"
        return "no difference shown"

    @property
    def episodes(self) -> str:
        """How many seeds of how many problems."""
        seeds, problems = counted(len(self.ranking.seeds), "seed"), len(self.ranking.variants[self.scenario])
        return seeds if problems == 1 else f"{seeds} × {problems}"

    def cells(self) -> list[str]:
        """Cells of the columns :data:`HEADS`."""
        published, rule, agent = (self.best(kind) for kind in SHOWN)
        priorities = self.priorities
        return [
            self.scenario,
            workloads_of(self.ranking).replace(" workloads", ""),
            self.episodes,
            self.cell(published),
            self.cell(rule),
            NONE if priorities is None else COST.format(priorities.mean.mean),
            self.cell(agent),
            NONE if agent is None else agent.against.text(DIFFERENCE),
            self.verdict,
        ]

    def cell(self, standing: RankStanding | None) -> str:
        """A scheduler of the row, and its cost."""
        return NONE if standing is None else f"{self.called(standing.scheduler)} {COST.format(standing.mean.mean)}"


def of_record(rankings: Mapping[str, Ranking]) -> list[Summary]:
    """The file that counts for each scenario and set of workloads, by scenario; ``rankings``: by file.

    The one with a trained agent, with enough seeds for ranks, with most seeds, with most schedulers, in this order.
    """
    found: dict[tuple[str, str], Summary] = {}
    for file, ranking in rankings.items():
        for scenario in ranking.variants:
            key = (scenario, workloads_of(ranking))
            if key not in found or _says(ranking) > _says(found[key].ranking):
                found[key] = Summary(file, ranking, scenario)
    return sorted(found.values(), key=lambda one: (one.scenario, one.ranking.gpu or "", _order(one.ranking)))


def check_opponents(summaries: Iterable[Summary], rankings: Sequence[Ranking]) -> None:
    """Whether agents were ranked beside the strongest rules that are known.

    Raises:
        InputError: the rule that was cheapest on training workloads is missing beside an agent, or one that was
            cheapest in another of the rankings with enough seeds.
    """
    for row in summaries:
        if row.best("agent") is None:
            continue
        tuning, of = tuning_for(row.scenario), workloads_of(row.ranking)
        known = {} if tuning is None else {tuning.chosen: "training workloads"}
        for other in rankings:
            if row.scenario in other.variants and workloads_of(other) == of and len(other.seeds) >= FEW_SEEDS:
                known[other.cheapest(row.scenario)] = counted(len(other.seeds), "seed")
        for rule, where in known.items():
            if rule not in row.ranking.schedulers:
                raise InputError(
                    f"{row.file}: {row.scenario}, {of}: the agent was not ranked beside {rule}, the best of {where}; "
                    "rank it there too"
                )


def _says(ranking: Ranking) -> tuple[bool, bool, int, int]:
    learned, seeds = any(map(is_learned, ranking.schedulers)), len(ranking.seeds)
    return learned, seeds >= FEW_SEEDS, seeds, len(ranking.schedulers)


def _order(ranking: Ranking) -> int:
    return ORDER.index(ranking.workloads)
