"""The page of drawn scenarios: what there is to gain on each split, and who gains how much of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.table import Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.pages import drawing, page
from gpusched_env.experiments.lib.renamed import now_called
from gpusched_env.experiments.lib.statistics import Interval
from gpusched_env.experiments.ranking.result import Ranking
from gpusched_env.games.drawn.environment.rules import RULES
from gpusched_env.games.drawn.experiments.costs import Floats, SplitCosts, split_costs
from gpusched_env.games.drawn.experiments.opponents import PLAIN
from gpusched_env.games.drawn.experiments.selector import Selector, features_of, fitted
from gpusched_env.games.drawn.problems.distribution import FEW, FULL, HOST_SHARES, HOSTS, OFFERED
from gpusched_env.games.drawn.problems.gpus import LEAST, MOST
from gpusched_env.games.drawn.problems.networks import ENGINE
from gpusched_env.games.drawn.problems.splits import SPLITS, TIERS, TRAIN, WHAT

SHOWN: Final = 15
"""Schedulers in the table of a split, the best first, and the plain GPU."""
TIMES: Final = "{:.3f}"
DULL: Final = 1.12
"""Where the best single rule costs no more than so many times the best in hindsight, there is little to learn."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What there is to gain on a split."""

    costs: SplitCosts
    chosen: Floats | None
    """Mean logarithms of the selector's choices, shape ``(scenarios,)``; ``None``: nothing to fit it on, or the split
    that it is fitted on."""
    trained: str
    """The scheduler that is best on the training split; the best here without one."""

    @property
    def single(self) -> Floats:
        """Mean logarithms of the scheduler that is best on the training split, shape ``(scenarios,)``."""
        return np.asarray(self.costs.means[:, self.costs.schedulers.index(self.trained)])

    @property
    def gap(self) -> Interval:
        """How many times the best in hindsight the best single scheduler costs."""
        return self.costs.over_hindsight(self.single)

    @property
    def headline(self) -> str:
        """A sentence on what there is to gain."""
        return (
            f"`{self.costs.split}`: {self.trained} costs {self.gap.text(TIMES)} times the best in hindsight"
            f"{'' if self.gap.mean >= DULL else ', which is too little to tell learners apart'}."
        )


def standings(rankings: Sequence[Ranking]) -> list[Standing]:
    """What there is to gain on each split, in the order of splits.

    Raises:
        InputError: a split is there twice; schedulers differ; as :func:`split_costs`.
    """
    found = {costs.split: costs for costs in map(split_costs, rankings)}
    if len(found) < len(rankings):
        raise InputError("two files rank the same split; one file a split")
    if len({tuple(costs.schedulers) for costs in found.values()}) > 1:
        raise InputError("the files rank different schedulers; rank the same on every split")
    train = found.get(TRAIN)
    selector = None if train is None else fitted(train)
    return [
        Standing(
            costs,
            None if selector is None or split == TRAIN else _selected(selector, costs),
            (train or costs).schedulers[(train or costs).best_single],
        )
        for split in WHAT
        if (costs := found.get(split)) is not None
    ]


def _selected(selector: Selector, costs: SplitCosts) -> Floats:
    chosen: NDArray[np.int64] = selector.choose(features_of(costs.scenarios))
    return np.asarray(costs.means[np.arange(len(chosen)), chosen])


def drawn_pages(rankings: Sequence[Ranking], docs: Path) -> dict[str, bytes | str]:
    """The page and its figure, by file name.

    Raises:
        InputError: as :func:`standings`, or matplotlib is not installed.
    """
    found = standings(rankings)
    picture = f"{docs.stem}.svg"
    text = page(
        "drawn.md.j2",
        headlines=[one.headline for one in found],
        drawn=_drawn(),
        gaps=_gaps(found),
        splits=[(one.costs.split, WHAT[one.costs.split], _schedulers(one)) for one in found],
        picture=picture,
        commands=[now_called(ranking.command) for ranking in rankings],
    )
    return {docs.name: text, picture: _profile(found[-1].costs if len(found) == 1 else _judged(found).costs)}


def _drawn() -> list[tuple[str, str]]:
    """What the split to train on is drawn from, and in what each other one departs."""
    of = SPLITS[TRAIN]
    lowest, highest = of.loads[0]
    rows = [
        ("GPUs", f"{', '.join(of.gpus)}; half of them varied: {LEAST:g} to {MOST:g} times clock, bandwidth and L2"),
        (
            "tenants",
            f"{of.tenants[0]} to {FEW}, those without an objective among them; services have one or two priorities",
        ),
        ("networks of services", ", ".join(of.networks.services)),
        ("networks without an objective", ", ".join(of.networks.best_effort)),
        ("engines", f"`{ENGINE}`, in a fifth of what is drawn, but not beside best effort"),
        ("arrivals", ", ".join(of.arrivals)),
        ("load", f"{lowest:g} to {highest:g} of the time that all requests take alone"),
        ("profiles", ", ".join(of.knowledge)),
        ("commands", ", ".join(f"{name} in {share:.0%}" for name, share in OFFERED.items())),
        ("hosts", ", ".join(f"{name} {share:.0%}" for name, share in zip(HOSTS, HOST_SHARES, strict=True))),
    ]
    unseen = {
        "networks": ", ".join((*SPLITS["networks"].networks.services, *SPLITS["networks"].networks.best_effort)),
        "gpu": ", ".join(SPLITS["gpu"].gpus),
        "loads": "; ".join(f"{low:g} to {high:g}" for low, high in SPLITS["loads"].loads)
        + f"; {', '.join(SPLITS['loads'].arrivals)}",
        "combinations": f"more than {FEW} tenants; engine beside best effort; forgotten profiles, load above {FULL:g}",
        **{
            tier: f"tenants up to {of.tenants[1]}, {', '.join(of.arrivals)}, {', '.join(of.knowledge)}"
            for tier, of in TIERS.items()
        },
    }
    return [*rows, *((f"split `{split}` instead", found) for split, found in unseen.items())]


def _judged(found: Sequence[Standing]) -> Standing:
    """The first split that is not trained on."""
    return next((one for one in found if one.costs.split != TRAIN), found[0])


def _gaps(found: Sequence[Standing]) -> Table:
    heads = ["split", "what", "scenarios", "best single on train", "its cost", "selector", "rules, in hindsight"]
    heads.append("who is best somewhere")
    rows = []
    for one in found:
        costs = one.costs
        often = Counter(costs.schedulers[row] for row in costs.means.argmin(1).tolist())
        several = len([name for name in often if often[name] >= 0.02 * len(costs.scenarios)])
        chosen = "-" if one.chosen is None else costs.over_hindsight(one.chosen).text(TIMES)
        few = costs.among(RULES)
        rules = costs.over_hindsight(few.hindsight()).text(TIMES) if few.schedulers else "-"
        count = f"{len(costs.scenarios)} x {costs.logs.shape[1]}"
        rows.append(
            [
                *(costs.split, WHAT[costs.split], count, one.trained, one.gap.text(TIMES), chosen, rules),
                f"{several} schedulers",
            ]
        )
    return Table("What there is to gain", heads, rows)


def _schedulers(one: Standing) -> Table:
    costs = one.costs
    order = costs.means.mean(0).argsort().tolist()
    plain = costs.schedulers.index(PLAIN)
    rows = []
    for row in [*order[:SHOWN], *([plain] if plain in order[SHOWN:] else [])]:
        logs = costs.means[:, row]
        best = float((costs.means.argmin(1) == row).mean())
        worst = float(np.exp((logs - costs.means.min(1)).max()))
        better = float(((logs < one.single) + 0.5 * (logs == one.single)).mean())
        times = costs.over_hindsight(logs).text(TIMES)
        shares = [f"{better:.0%}", f"{best:.0%}"]
        rows.append([costs.schedulers[row], times, f"{costs.score(logs):.2f}", *shares, f"{worst:.1f}"])
    heads = ["scheduler", "times hindsight", "score", "better than best single", "best on", "worst, times the best"]
    return Table(costs.split, heads, rows)


def _profile(costs: SplitCosts) -> bytes:
    """Performance profiles: on which share of scenarios a scheduler has at least a score."""
    order = costs.means.mean(0).argsort()[:6].tolist()
    with drawing((6.4, 3.6)) as (figure, finished):
        axes = figure.add_subplot()
        for row in order:
            scores = costs.scores(costs.means[:, row])
            scores = np.sort(scores[np.isfinite(scores)])
            axes.step(scores, 1.0 - np.arange(len(scores)) / len(scores), label=costs.schedulers[row], where="post")
        axes.set_xlim(-0.5, 1.0)
        axes.set_xlabel("score: 0 the plain GPU, 1 the best that is known on the scenario")
        axes.set_ylabel("share of scenarios")
        axes.grid(color="#ececec", linewidth=0.6)
        axes.legend(frameon=False, fontsize=8)
        return finished()
