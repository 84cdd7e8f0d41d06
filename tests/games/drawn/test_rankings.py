"""Rankings of drawn scenarios, who is best in hindsight, and the selector."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.games.drawn.environment.rules import RULES
from gpusched_env.games.drawn.experiments.costs import SplitCosts, split_costs
from gpusched_env.games.drawn.experiments.game import OneByOne, run_drawn_cell
from gpusched_env.games.drawn.experiments.halving import RUNGS, Halving, candidates
from gpusched_env.games.drawn.experiments.opponents import PUBLISHED, VARIANTS
from gpusched_env.games.drawn.experiments.page import drawn_pages
from gpusched_env.games.drawn.experiments.selector import Selector, features_of
from gpusched_env.games.drawn.problems.splits import TRAIN, frozen, names_of
from tests.refusals import refused

TWO = ("split=tier-1", "scenarios=2")


def test_a_split_is_ranked_and_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "ranking.json"
    first = rank("Drawn", ["pass-through", "edf"], 1, file, settings=TWO, workers=1)
    assert first.variants == {"Drawn": ["tier-1-0", "tier-1-1"]}
    said: list[str] = []
    more = rank("Drawn", ["pass-through", "edf"], 2, file, settings=TWO, workers=1, resume=True, on_resumed=said.append)
    assert "4 episodes kept" in said[0]
    assert (
        more.costs("Drawn", "compiled")["edf"][:, 0].tolist() == first.costs("Drawn", "compiled")["edf"][:, 0].tolist()
    )
    costs = split_costs(more)
    assert (costs.split, costs.scenarios, costs.logs.shape) == ("tier-1", ["tier-1-0", "tier-1-1"], (2, 2, 2))
    floor = frozen()["tier-1"][0].floor
    assert costs.logs[0, 0, 1] == math.log(max(floor, more.costs("Drawn", "compiled")["edf"][0, 0]))
    page = drawn_pages([more], tmp_path / "drawn.md")
    text = str(page["drawn.md"])
    assert "| tier-1 | two tenants, right profiles | 2 x 2 | edf |" in text
    assert "| edf | 1.000 [1.000, 1.000] |" in text, "it is the best on both scenarios, with each seed"
    assert set(page) == {"drawn.md", "drawn.svg"}
    with refused(InputError, "same split"):
        drawn_pages([more, more], tmp_path / "drawn.md")


@pytest.mark.parametrize(
    ("setting", "said"), [("split=nowhere", "nowhere"), ("scenarios=0", "scenarios"), ("x=1", "x")]
)
def test_other_settings_are_refused(setting: str, said: str) -> None:
    with refused(InputError, said):
        rank("Drawn", ["edf"], 1, settings=[setting], workers=1)


def test_all_rules_of_the_environment_are_ranked() -> None:
    assert set(RULES) <= {*PUBLISHED, *VARIANTS}


def test_an_interrupt_leaves_scenarios_with_all_seeds() -> None:
    groups = OneByOne("Drawn", ("a", "b"), run_drawn_cell).groups(["edf", "sjf"], [0, 1, 2])
    assert [(group[0].variant, group[0].seed) for group in groups] == [(v, s) for v in "ab" for s in (0, 1, 2)]
    assert [cell.scheduler for cell in groups[0]] == ["edf", "sjf"]


def test_what_it_has_not_is_said() -> None:
    game = game_of("Drawn")
    with refused(InputError, "drawn-tune"):
        game.tuned("Drawn", None, 0, 1)
    with refused(InputError, "gpu", "Drawn"):
        game.configured("Drawn", {}, "h100-sxm")


def test_its_training_is_the_agents() -> None:
    config = game_of("Drawn").configured("Drawn", {"settings": {"forks": 2}}, None)
    assert (config.policy, config.settings["forks"]) == ("choice", 2)


COSTS = SplitCosts(
    "train",
    ["train-0", "train-1"],
    ["pass-through", "left", "right"],
    np.log([[[4.0, 1.0, 2.0], [4.0, 2.0, 1.0]], [[8.0, 2.0, 8.0], [8.0, 2.0, 8.0]]]),
)
"""Two scenarios, two seeds; on the first, seeds disagree about who is better."""


def test_hindsight_is_chosen_by_other_seeds() -> None:
    assert COSTS.chosen_elsewhere().tolist() == [[2, 1], [1, 1]]
    assert np.exp(COSTS.hindsight()).tolist() == pytest.approx([2.0, 2.0])
    assert COSTS.schedulers[COSTS.best_single] == "left"
    left = COSTS.over_hindsight(COSTS.means[:, 1])
    assert left.mean == pytest.approx(2.0**-0.25), "the seeds of one scenario are too few to know who is best"
    assert COSTS.over_hindsight(COSTS.among(["right", "pass-through"]).hindsight()).mean == pytest.approx(2.0**0.75)
    with refused(InputError, "one"):
        SplitCosts("train", ["a"], ["b"], np.zeros((1, 1, 1))).hindsight()


def test_scores_are_0_for_the_plain_gpu_and_1_for_the_best() -> None:
    assert COSTS.scores(COSTS.means[:, 0]).tolist() == [0.0, 0.0]
    assert COSTS.scores(COSTS.means.min(1)).tolist() == [1.0, 1.0]
    assert COSTS.scores(np.log([math.sqrt(4.0 * math.sqrt(2.0)), 4.0])).tolist() == pytest.approx([0.5, 0.5])
    equal = SplitCosts("train", ["a"], ["pass-through", "b"], np.log([[[1.0, 1.0]]]))
    assert math.isnan(equal.scores(equal.means[:, 0])[0])


def test_the_selector_takes_who_was_best_nearby() -> None:
    known = np.array([[0.0], [0.1], [5.0], [5.1]])
    logs = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    selector = Selector(np.zeros(1), np.ones(1), known, logs, neighbours=2)
    assert selector.choose(np.array([[-1.0], [6.0]])).tolist() == [0, 1]


def test_features_tell_scenarios_apart_and_are_finite() -> None:
    found = features_of(["tier-1-0", "tier-1-1", "combinations-0"])
    assert np.isfinite(found).all()
    assert len({tuple(row) for row in found.tolist()}) == 3


def test_halving_keeps_the_defaults_and_the_cheapest() -> None:
    specs = candidates("clockwork")
    assert next(iter(specs)) == "clockwork"
    assert len(specs) == RUNGS[0][0]
    names = names_of(TRAIN, RUNGS[0][1])
    ranked = {spec: dict.fromkeys(names, 1000000.0 + place) for place, spec in enumerate(reversed(specs))}
    kept = Halving(["clockwork"], ranked)._cheapest("clockwork", specs, 3)
    assert list(kept) == ["clockwork", *list(specs)[:-3:-1]]
    assert candidates("pass-through") == {"pass-through": {}}
