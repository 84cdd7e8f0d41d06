"""The leaderboard: which file of episodes stands for a scenario, and who is of which kind."""

from __future__ import annotations

from pathlib import Path

from gpusched_env.experiments.ranking.result import encode_ranking
from gpusched_env.experiments.reference.leaderboard import boards
from tests.experiments.test_ranking import made_of

FEW = {"orion": [7.0, 9.0], "tuned:plan": [8.0, 8.5]}
MORE = {**FEW, "fifo": [20.0, 22.0], "sjf": [10.0, 12.0]}
WITH_AN_AGENT = {**FEW, "learned": [6.0, 7.0]}


def written(docs: Path, **rankings: dict[str, list[float]]) -> Path:
    """A folder of docs with a result file for each."""
    (docs / "results").mkdir(parents=True, exist_ok=True)
    for name, costs in rankings.items():
        (docs / "results" / f"{name}.json").write_bytes(encode_ranking(made_of("One", costs)))
    return docs


def test_the_file_with_the_most_schedulers_stands_for_a_scenario(tmp_path: Path) -> None:
    (board,) = boards(written(tmp_path, a=FEW, b=MORE))
    assert board.path.stem == "b"
    assert board.best("agent") is None


def test_but_one_with_a_trained_agent_before_it(tmp_path: Path) -> None:
    (board,) = boards(written(tmp_path, a=WITH_AN_AGENT, b=MORE))
    assert board.path.stem == "a"
    best = {kind: board.best(kind) for kind in ("published", "rule", "agent")}
    assert {kind: one and one.scheduler for kind, one in best.items()} == {
        "published": "orion",
        "rule": "tuned:plan",
        "agent": "learned",
    }


def test_of_as_many_schedulers_the_one_with_more_seeds(tmp_path: Path) -> None:
    longer = {name: [*costs, 8.0] for name, costs in FEW.items()}
    (board,) = boards(written(tmp_path, a=longer, b=FEW))
    assert board.path.stem == "a"


def test_few_seeds_of_many_schedulers_do_not_stand_for_a_scenario(tmp_path: Path) -> None:
    enough = {name: [*costs, *costs, *costs] for name, costs in WITH_AN_AGENT.items()}
    (board,) = boards(written(tmp_path, a=enough, b={**MORE, "learned": [6.0, 7.0]}))
    assert board.path.stem == "a"
