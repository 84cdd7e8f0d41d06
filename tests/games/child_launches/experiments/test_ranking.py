"""Rankings of schedulers of child launches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.agents.shipped import shipped_names
from gpusched_env.errors import InputError
from gpusched_env.experiments.ranking.result import read_ranking
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.games.child_launches.agents.rule import NAME
from gpusched_env.games.child_launches.experiments import game
from gpusched_env.games.child_launches.experiments.game import NAMED, speedups
from tests.refusals import refused


def test_costs_are_times_over_flat_and_a_ranking_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(game.GAME), "ranked_on", ("MM-small",))
    path = tmp_path / "ranking.json"
    first = rank(NAME, ["flat", "baseline-dp"], 2, path, workers=1)
    costs = first.costs(NAME, "compiled")
    np.testing.assert_array_equal(costs["flat"], 1.0)
    assert (costs["baseline-dp"] < 1.0).all()
    told: list[int] = []
    names = ["flat", "baseline-dp", "offline-search(points=2)"]
    more = rank(NAME, names, 2, path, workers=1, resume=True, on_progress=lambda n, share: told.append(n))
    assert told == [5, 6], "one more of each input; four episodes were kept"
    assert more.clairvoyant == ["offline-search(points=2)"]
    assert read_ranking(path).complete
    (remark,) = more.remarks[NAME]
    assert "flat 1.000 [1.000, 1.000]" in remark


def test_geometric_means_have_intervals() -> None:
    costs = {"twice": np.full((3, 4), 0.5), "mixed": np.array([[0.5, 2.0, 0.5, 2.0]])}
    found = speedups(costs)
    assert found["twice"] == pytest.approx((2.0, 2.0, 2.0))
    mean, low, high = found["mixed"]
    assert mean == pytest.approx(1.0)
    assert low < mean < high


def test_it_is_ranked_by_itself() -> None:
    with refused(InputError, "itself"):
        rank([NAME, "Toy"], ["flat"], 1)
    with refused(InputError, "scheduler"):
        rank(NAME, ["sjf"], 1)


def test_by_default_all_that_there_are_are_ranked() -> None:
    names = NAMED.defaults()
    assert {"flat", "spawn", "offline-search"} <= set(names)
    assert ("learned" in names) == (NAME in shipped_names())
