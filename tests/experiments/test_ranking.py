"""Rankings: statistics solved by hand, result files that grow, and the page made of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.ranking.page import markdown, reference_of
from gpusched_env.experiments.ranking.result import Ranking, device_difference, encode_ranking, read_ranking
from gpusched_env.experiments.ranking.run import run_ranking
from gpusched_env.experiments.ranking.statistics import interquartile_mean, standings

COSTS = {
    "a": np.array([[10.0, 12.0, 14.0, 16.0]]),
    "b": np.array([[11.0, 11.0, 15.0, 15.0]]),
    "c": np.array([[20.0, 22.0, 24.0, 26.0]]),
}


def test_figures_of_a_ranking() -> None:
    found = {standing.scheduler: standing for standing in standings(COSTS, "a")}
    assert list(found) == ["a", "b", "c"], "in the order given where means are equal"
    assert found["b"].mean.mean == 13.0
    assert found["c"].against.mean == pytest.approx(23.0 / 13.0 - 1.0)
    assert found["a"].improvement.mean == 0.5, "against itself"
    assert found["b"].improvement.mean == 0.5, "two episodes each"
    assert found["c"].improvement.mean == 0.0
    assert [found[name].rank.mean for name in "abc"] == [1.0, 1.0, 3.0]
    assert (found["c"].rank.low, found["c"].rank.high) == (3.0, 3.0), "in every resample"
    assert (found["b"].rank.low, found["b"].rank.high) == (1.0, 2.0)


def test_intervals_are_over_the_same_seeds() -> None:
    """What is 10 % better on every episode is so in every resample, however much the episodes differ."""
    base = np.random.default_rng(0).lognormal(3.0, 1.0, (3, 10))
    (better, _) = standings({"base": base, "better": 0.9 * base}, "base")
    assert better.scheduler == "better"
    assert (better.against.low, better.against.high) == pytest.approx((-0.1, -0.1))
    assert better.mean.high is not None
    assert better.mean.high > 1.1 * better.mean.mean


def test_interquartile_mean() -> None:
    assert interquartile_mean(np.array([[1.0, 2.0, 3.0, 100.0], [4.0, 5.0, -50.0, 6.0]])) == pytest.approx(3.5)
    assert interquartile_mean(np.array([[7.0]])) == 7.0


def toy(path: Path, seeds: int, **options: object) -> Ranking:
    schedulers = ["pass-through", "sjf", "random"]
    return run_ranking(["Toy"], schedulers, range(seeds), path, workers=1, **options)  # type: ignore[arg-type]


def test_both_devices_and_a_resumed_file(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    toy(path, 1, devices=["compiled", "reference"])
    before = path.read_bytes()
    ranking = toy(path, 2, devices=["compiled", "reference"], resume=True)
    assert ranking.complete
    assert len(ranking.episodes) == 3 * 2 * 2
    assert device_difference(ranking, "Toy") < 1e-12
    anew = toy(tmp_path / "anew.json", 2, devices=["compiled", "reference"])
    assert ranking.episodes == anew.episodes
    assert read_ranking(path).episodes == ranking.episodes
    assert before != path.read_bytes()
    page = markdown([ranking])
    assert reference_of(ranking, "Toy") == "sjf"
    assert "the same order, costs of every episode are equal" in page
    assert "gpusched rank Toy --schedulers pass-through,sjf,random --seeds 2 --seed 0" in page
    assert "| sjf | 1.14 [1.14, 1.14] |" in page


def test_a_file_of_another_version_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    ranking = toy(path, 1)
    path.write_bytes(encode_ranking(msgspec.structs.replace(ranking, versions={"gpusched-env": "0.0.0"})))
    with pytest.raises(InputError, match=r"is of version 0\.0\.0"):
        toy(path, 2, resume=True)


def test_devices_that_differ_are_told(tmp_path: Path) -> None:
    ranking = toy(tmp_path / "ranking.json", 1, devices=["compiled", "reference"])
    last = ranking.episodes[-1]
    assert (last.cell.device, last.cell.scheduler) == ("reference", "random")
    ranking.episodes[-1] = msgspec.structs.replace(last, cost=0.5 * last.cost)
    assert device_difference(ranking, "Toy") == pytest.approx(0.5)
    assert "different orders, costs of every episode differ by 0.5 at most" in markdown([ranking])


def test_a_page_needs_every_episode(tmp_path: Path) -> None:
    ranking = toy(tmp_path / "ranking.json", 1)
    ranking.episodes.pop()
    assert not ranking.complete
    with pytest.raises(InputError, match="1 of 3 episodes are missing"):
        markdown([ranking])


def test_held_out_workloads_on_another_gpu(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    options = {"workloads": "held_out", "gpu": "h200-sxm", "workers": 1}
    ranking = run_ranking(["InferenceBesideTraining"], ["pass-through"], [0], path, **options)  # type: ignore[arg-type]
    assert ranking.variants == {"InferenceBesideTraining": [f"InferenceBesideTraining-held_out-{i}" for i in range(3)]}
    assert "InferenceBesideTraining, held-out workloads, h200-sxm" in markdown([ranking])


@pytest.mark.parametrize(
    ("scenario", "options", "message"),
    [
        ("Toy", {"workloads": "train"}, "Toy has no workload_sets"),
        ("Toy", {"workloads": "all"}, "must be one of own, train, held_out"),
        ("Toy", {"devices": ["abacus"]}, "unknown device"),
    ],
)
def test_refusals_write_nothing(tmp_path: Path, scenario: str, options: dict[str, object], message: str) -> None:
    path = tmp_path / "ranking.json"
    with pytest.raises(InputError, match=message):
        run_ranking([scenario], ["sjf"], [0], path, **options)  # type: ignore[arg-type]
    assert not path.exists()
    path.write_text("{}")
    with pytest.raises(InputError, match="not a ranking"):
        read_ranking(path)
