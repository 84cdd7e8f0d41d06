"""What came of fitting the model of interference: the model, its errors group by group, tables and page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from gpusched_env.display.table import Table
from gpusched_env.display.words import counted
from gpusched_env.experiments.interference.pairs import (
    FITTED_ON,
    LAUNCHES,
    PENALTIES,
    SIZES,
    UNSEEN,
    UNSEEN_ON,
    Demands,
    RecordedPairs,
    Simulated,
    Speeds,
    company_speeds,
    demand_of,
    errors,
    fit,
    fitted_networks,
    left_out_error,
    networks_of,
    recorded_pairs_by_group,
    with_exponent,
)
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.verdicts import JudgedResult, Target, as_row, table_of
from gpusched_env.planning.interference import Floats

MOST_SIMULATED: Final = 0.08
MOST_RECORDED: Final = 0.10
"""Largest median errors that hold: of simulated and of recorded pairs."""
EXTREMES: Final = 3
"""Pairs at each end."""


@dataclass(frozen=True)
class GroupErrors:
    """How far predictions of a group are off: absolute errors of speeds."""

    group: str
    number: int
    urgent: float
    """Median error of the job that goes first."""
    behind: float
    """Median error of the other jobs."""
    both: float
    p90: float
    naive: float
    """Median of a prediction that knows nobody: the mean speeds of the fitted pairs."""


def group_errors(group: str, predicted: Floats, found: Floats, naive: Floats, relative: bool = True) -> GroupErrors:
    """Errors of speeds, shape ``(pairs, jobs)``; ``naive``: shape ``(jobs,)``; ``relative``: to the speeds found."""
    scale = found if relative else np.ones_like(found)
    off, off_naive = np.abs(predicted - found) / scale, np.abs(naive - found) / scale
    return GroupErrors(
        group,
        len(found),
        urgent=float(np.median(off[:, 0])),
        behind=float(np.median(off[:, 1:])),
        both=float(np.median(off)),
        p90=float(np.quantile(off, 0.9)),
        naive=float(np.median(off_naive)),
    )


class Interference(JudgedResult):
    """A fit to simulated pairs, and how well it predicts others."""

    name = "interference"

    def __init__(self, simulated: Simulated) -> None:
        """Fit the model; takes seconds."""
        self.simulated = simulated
        fitted, unseen = fitted_networks(), list(UNSEEN)
        demands: Demands = {
            (name, launch, gpu): demand_of(name, launch, gpu)
            for name in [*fitted, *unseen]
            for launch in LAUNCHES
            for gpu in UNSEEN_ON
        }
        training = simulated.of_networks(fitted)
        self.left_out = {penalty: left_out_error(training, demands, penalty) for penalty in PENALTIES}
        best = min(self.left_out, key=lambda penalty: self.left_out[penalty])
        pairs_of = f"{counted(len(training), 'simulated pair')} of {counted(len(fitted), 'network')}"
        words = f"{pairs_of} on {', '.join(FITTED_ON)}, penalty {best:g}"
        companies = simulated.companies_of(fitted)
        self.model = with_exponent(fit(training, demands, best, words), companies, demands)
        self._naive = np.exp(np.log([pair.speeds for pair in training]).mean(axis=0))
        self.groups = [
            self._simulated("simulated, networks of the fit", training, demands),
            *(
                self._simulated(f"simulated, unseen networks, {how}", pairs, demands)
                for launch, how in zip(LAUNCHES, ("kernel by kernel", "as graphs"), strict=True)
                if (pairs := [p for p in simulated.of_networks(unseen) if p.launch == launch and p.gpu in FITTED_ON])
            ),
            *(self._recorded(group) for group in recorded_pairs_by_group()),
        ]
        self.by_gpu = [
            self._simulated(gpu if gpu in FITTED_ON else f"{gpu}, not in the fit", pairs, demands)
            for gpu in UNSEEN_ON
            if (pairs := [pair for pair in simulated.of_networks(unseen) if pair.gpu == gpu])
        ]
        self.companies = [self._companies(size, simulated.companies_of(unseen, size), demands) for size in SIZES]

    def _simulated(self, group: str, pairs: Sequence[Speeds], demands: Demands) -> GroupErrors:
        found = np.array([pair.speeds for pair in pairs])
        return group_errors(group, (1.0 + errors(self.model, pairs, demands)) * found, found, self._naive)

    def _companies(self, size: int, companies: Sequence[Speeds], demands: Demands) -> GroupErrors:
        """Errors of several networks: the naive prediction has all behind the first as slow as the second of a pair."""
        found = np.array([one.speeds for one in companies])
        predicted = np.array(company_speeds(self.model, companies, demands))
        naive = np.array([self._naive[0], *[self._naive[1]] * (size - 1)])
        return group_errors(f"{size} unseen networks", predicted, found, naive, relative=False)

    def _recorded(self, group: RecordedPairs) -> GroupErrors:
        demands = {name: demand_of(name, "graph", group.gpu, group.workloads) for name in networks_of(group.pairs)}
        predicted = np.array([self.model.speeds(demands[pair.fg], demands[pair.bg]) for pair in group.pairs])
        found = 1.0 / np.array([pair.recorded for pair in group.pairs])
        return group_errors(f"recorded, {group.what}", predicted, found, self._naive)

    def checks(self) -> Sequence[Target]:
        """Median errors of what was not in the fit."""
        return [
            Target(f"median error, {group.group}", 0.0, MOST_RECORDED if "recorded" in group.group else MOST_SIMULATED,
                   group.both)
            for group in self.groups[1:]
        ]  # fmt: skip

    def summary(self) -> str:
        """The result in half a line."""
        worst = max(self.checks(), key=lambda check: check.ours)
        return f"speeds side by side are off by {worst.ours:.1%} or less in the median of each group"

    def tables(self) -> Sequence[Table]:
        """Errors, also by GPU and of more networks; the penalty; the pairs that disturb each other most and least."""
        return [
            table_of(
                "Errors of predicted speeds",
                self.groups,
                "pairs of = {group} | number = {number} | urgent = {urgent:.1%} | behind = {behind:.1%} "
                "| both = {both:.1%} | p90 = {p90:.1%} | knowing nobody = {naive:.1%}",
            ),
            table_of(
                "Errors by GPU",
                self.by_gpu,
                "unseen networks on = {group} | number = {number} | urgent = {urgent:.1%} | behind = {behind:.1%} "
                "| both = {both:.1%} | p90 = {p90:.1%} | knowing nobody = {naive:.1%}",
            ),
            table_of(
                "Errors in companies of more",
                self.companies,
                "companies of = {group} | number = {number} | urgent = {urgent:.3f} | behind = {behind:.3f} "
                "| all = {both:.3f} | p90 = {p90:.3f} | knowing nobody = {naive:.3f}",
            ),
            table_of(
                "The penalty",
                [{"penalty": penalty, "error": error} for penalty, error in self.left_out.items()],
                "penalty = {penalty:g} | mean error on networks that were left out = {error:.2%}",
            ),
            table_of(
                "Extremes",
                self._extremes(),
                "urgent = {urgent} | its speed = {speeds[0]:.2f} | predicted = {predicted[0]:.2f} | behind = {behind} "
                "| its speed = {speeds[1]:.2f} | predicted = {predicted[1]:.2f}",
            ),
        ]

    def _extremes(self) -> list[dict[str, Any]]:
        """The smallest and the largest sums of speeds of pairs that hosts launch kernel by kernel on the first GPU."""
        of_hosts = (pair for pair in self.simulated.pairs if (pair.launch, pair.gpu) == ("host", FITTED_ON[0]))
        pairs = sorted(of_hosts, key=lambda pair: sum(pair.speeds))
        return [
            {
                "urgent": pair.networks[0],
                "behind": pair.networks[1],
                "speeds": pair.speeds,
                "predicted": self.model.speeds(*(demand_of(name, pair.launch, pair.gpu) for name in pair.networks)),
            }
            for pair in (*pairs[:EXTREMES], *pairs[-EXTREMES:])
        ]

    def as_dict(self) -> dict[str, Any]:
        """The pairs that were simulated, and what is found."""
        return {
            **msgspec.to_builtins(self.simulated),
            "model": msgspec.to_builtins(self.model),
            "groups": [as_row(group) for group in self.groups],
            "by_gpu": [as_row(group) for group in self.by_gpu],
            "groups_of_more": [as_row(group) for group in self.companies],
            "left_out": {f"{penalty:g}": error for penalty, error in self.left_out.items()},
        }

    def markdown(self) -> str:
        """The page of the result, Markdown."""
        return page("interference.md.j2", result=self, unseen=UNSEEN, fitted=fitted_networks())
