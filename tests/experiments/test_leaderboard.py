"""The leaderboard: which file of episodes stands for a scenario, who is of which kind, and what a row says."""

from __future__ import annotations

from pathlib import Path

from gpusched_env.experiments.ranking.result import encode_ranking
from gpusched_env.experiments.reference.leaderboard import committed
from gpusched_env.experiments.results.summary import Summary, of_record
from tests.experiments.test_ranking import made_of

FEW = {"orion": [7.0, 9.0], "tuned:plan": [8.0, 8.5]}
MORE = {**FEW, "fifo": [20.0, 22.0], "sjf": [10.0, 12.0], "priority-streams": [11.0, 12.0]}
WITH_AN_AGENT = {**FEW, "learned": [6.0, 7.0]}


def counting(docs: Path, **rankings: dict[str, list[float]]) -> Summary:
    """The one that counts of a folder of docs with a result file for each."""
    (docs / "results").mkdir(parents=True, exist_ok=True)
    for name, costs in rankings.items():
        (docs / "results" / f"{name}.json").write_bytes(encode_ranking(made_of("One", costs)))
    (row,) = of_record(committed(docs))
    return row


def test_the_file_with_the_most_schedulers_stands_for_a_scenario(tmp_path: Path) -> None:
    row = counting(tmp_path, a=FEW, b=MORE)
    assert row.file == "results/b.json"
    assert row.cells() == [
        "One", "own", "2 seeds", "`orion` 8.000", "`tuned:plan` 8.250", "11.500", "–", "–", "–",
    ]  # fmt: skip


def test_but_one_with_a_trained_agent_before_it(tmp_path: Path) -> None:
    row = counting(tmp_path, a=WITH_AN_AGENT, b=MORE)
    assert row.file == "results/a.json"
    assert [one and one.scheduler for one in map(row.best, ("published", "rule", "agent"))] == [
        "orion", "tuned:plan", "learned",
    ]  # fmt: skip
    assert row.cells()[5:] == ["–", "learned 6.500", "-18.8% [-22.2%, -14.3%]", "better"]


def test_of_as_many_schedulers_the_one_with_more_seeds(tmp_path: Path) -> None:
    longer = {name: [*costs, 8.0] for name, costs in FEW.items()}
    assert counting(tmp_path, a=longer, b=FEW).file == "results/a.json"


def test_few_seeds_of_many_schedulers_do_not_stand_for_a_scenario(tmp_path: Path) -> None:
    enough = {name: [*costs, *costs, *costs] for name, costs in WITH_AN_AGENT.items()}
    assert counting(tmp_path, a=enough, b={**MORE, "learned": [6.0, 7.0]}).file == "results/a.json"


def test_an_agent_is_judged_by_the_cheapest_of_all(tmp_path: Path) -> None:
    row = counting(tmp_path, a={**WITH_AN_AGENT, "plan": [5.0, 5.5]})
    assert row.verdict == "worse than `plan`"
