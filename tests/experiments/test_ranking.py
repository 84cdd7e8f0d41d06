"""Rankings: statistics solved by hand, result files that grow, and the page made of them."""

from __future__ import annotations

import csv
import gzip
import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from gpusched_env.agents import shipped
from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.lib.statistics import interquartile_mean, standings
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode, RunCell
from gpusched_env.experiments.ranking.page import table
from gpusched_env.experiments.ranking.pages import ranking_pages
from gpusched_env.experiments.ranking.replay import field_of, first_cells, replay
from gpusched_env.experiments.ranking.result import Ranking, device_difference, encode_ranking, read_ranking
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up, written
from tests.notebook import html
from tests.refusals import refused

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


def test_intervals_are_over_problems_where_there_are_several() -> None:
    """Two problems, one 10 % better and one 20 % worse: a draw of both is one of them twice, or each once."""
    base = np.array([[10.0] * 8, [10.0] * 8])
    found = {s.scheduler: s for s in standings({"base": base, "other": base * [[0.9], [1.2]]}, "base")}
    against = found["other"].against
    assert (against.low, against.mean, against.high) == pytest.approx((-0.1, 0.05, 0.2))


def test_interquartile_mean() -> None:
    assert interquartile_mean(np.array([1.0, 2.0, 3.0, 100.0, 4.0, 5.0, -50.0, 6.0])) == pytest.approx(3.5)
    assert interquartile_mean(np.array([[7.0], [8.0]])).tolist() == [7.0, 8.0]


def written_pages(*rankings: Ranking) -> str:
    """What rank-page writes, one after the other: the page, its figure, all tables."""
    return "".join(content.decode() for content in ranking_pages(rankings, Path("docs/rankings.md")).values())


def made_of(scenario: str, costs: dict[str, list[float]]) -> Ranking:
    """Episodes of these costs, by scheduler."""
    seeds = list(range(len(next(iter(costs.values())))))
    cells = [(RankedEpisode(scenario, scenario, name, "compiled", n), costs[name][n]) for n in seeds for name in costs]
    return Ranking(
        command="",
        versions={},
        workloads="own",
        gpu=None,
        schedulers=list(costs),
        devices=["compiled"],
        seeds=seeds,
        variants={scenario: [scenario]},
        episodes=[EpisodeCost(cell, cost) for cell, cost in cells],
    )


def test_rejected_jobs_have_a_column_where_there_are_any() -> None:
    ranking = made_of("One", {"a": [1.0] * 4, "b": [2.0] * 4})
    rejected = {"a": 0, "b": 3}
    assert "rejected" not in table(ranking, "One").heads, "an older file does not know"
    ranking.episodes = [msgspec.structs.replace(e, jobs_rejected=0) for e in ranking.episodes]
    assert "rejected" not in table(ranking, "One").heads
    ranking.episodes = [msgspec.structs.replace(e, jobs_rejected=rejected[e.cell.scheduler]) for e in ranking.episodes]
    shown = table(ranking, "One")
    assert [row[shown.heads.index("rejected")] for row in shown.rows] == ["0", "3"]


def test_an_episode_of_a_ranking_counts_what_was_rejected(tmp_path: Path) -> None:
    ranking = rank(
        ["ServingPoisson"], ["moore"], [0], tmp_path / "r.json", workers=1, settings=["load=3.0", "horizon_us=40000"]
    )
    assert ranking.to_frame()["jobs_rejected"][0] > 0


def toy(path: Path, seeds: int, **options: object) -> Ranking:
    schedulers = ["pass-through", "sjf", "random"]
    return rank(["Toy"], schedulers, range(seeds), path, workers=1, **options)  # type: ignore[arg-type]


def test_both_devices_and_a_resumed_file(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    toy(path, 1, devices=["compiled", "reference"])
    before = path.read_bytes()
    ranking = toy(path, 2, devices=["compiled", "reference"], resume=True)
    assert ranking.complete
    assert len(ranking.episodes) == 3 * 2 * 2 + 2, "and two with every tenant alone, on the first device"
    assert device_difference(ranking, "Toy") < 1e-9
    anew = toy(tmp_path / "anew.json", 2, devices=["compiled", "reference"])
    assert ranking.episodes == anew.episodes
    assert read_ranking(path).episodes == ranking.episodes
    assert before != path.read_bytes()
    assert str(ranking).startswith("Toy, own workloads\n"), "its tables"
    page = written_pages(ranking)
    assert ranking.cheapest("Toy") == "sjf"
    assert "Devices compiled and reference: the same order, costs of every episode" in page
    assert "gpusched lab rank Toy --schedulers pass-through,sjf,random --seeds 2 --seed 0" in page
    assert "Toy,own workloads,2,sjf,1.14,1.14,1.14,sjf," in page
    alone = "0.93,0.93,0.93"
    assert f"Toy,own workloads,2,alone (bound),{alone},sjf,-0.184,-0.184,-0.184," in page


def test_a_page_leads_with_one_table_and_one_figure() -> None:
    costs = {"a": [10.0] * 6, "b": [12.0] * 6, "learned": [9.0] * 6}
    own = made_of("One", costs)
    more = made_of("Two", {"b": [50.0] * 2, "a": [40.0] * 2})
    found = ranking_pages([own, more], Path("docs/rankings.md"))
    assert list(found) == ["rankings.md", "rankings.svg", "rankings.csv"]
    text, figure, tables = (content.decode() for content in found.values())
    lead = [line for line in text.splitlines() if line.startswith("|")]
    assert lead[0] == "| scheduler | One, own workloads | Two, own workloads |"
    assert lead[2:] == ["| learned | -10.0% | – |", "| a | 10 | 40 |", "| b | +20.0% | +25.0% |"]
    assert text.count("![") == 1
    assert all(f">{name}<" in figure for name in ("a", "b", "learned", "Two, own workloads"))
    rows = {(row["scenario"], row["scheduler"]): row for row in csv.DictReader(tables.splitlines())}
    bounded = ("cost", "rank", "difference", "better")
    learned, b = rows["One", "learned"], rows["Two", "b"]
    names = [f"{name}{bound}" for name in bounded for bound in ("", "_low", "_high")]
    assert [learned[name] for name in names] == ["9"] * 3 + ["1"] * 3 + ["-0.1"] * 3 + ["1.00"] * 3
    assert (learned["workloads"], learned["seeds"], learned["against"]) == ("own workloads", "6", "a")
    assert [b[name] for name in names[:9]] == ["50"] * 3 + [""] * 3 + ["0.25"] * 3, "two seeds make no rank"
    assert "- Two, own workloads: 2 seeds (from 0) of the scenario." in text


def test_a_difference_that_rounds_to_nothing_has_no_minus() -> None:
    costs = {"a": [1000.0] * 6, "learned": [999.9] * 6}
    content = ranking_pages([made_of("One", costs)], Path("docs/rankings.md"))
    assert b"| learned | +0.0% |" in content["rankings.md"]
    (row,) = (row for row in csv.DictReader(content["rankings.csv"].decode().splitlines()) if row["rank"] == "1")
    assert [row[f"difference{bound}"] for bound in ("", "_low", "_high")] == ["0"] * 3


def test_a_page_of_several_loads_leads_with_what_is_answered_in_time() -> None:
    def at(load: float, goodputs: dict[str, float]) -> Ranking:
        ranking = made_of("One", {name: [1.0] * 2 for name in goodputs})
        episodes = [
            msgspec.structs.replace(e, goodput_per_s=goodputs[e.cell.scheduler] + 10 * e.cell.seed)
            for e in ranking.episodes
        ]
        told = [name for name in goodputs if name == "told"]
        return msgspec.structs.replace(ranking, episodes=episodes, settings=[f"load={load}"], clairvoyant=told)

    at_loads = [at(1.5, {"a": 40.0, "told": 90.0}), at(0.5, {"a": 50.0, "told": 50.0}), at(1.0, {"a": 60.0})]
    own = made_of("One", {"a": [10.0] * 6, "b": [12.0] * 6})
    found = ranking_pages([own, *at_loads], Path("docs/serving.md"))
    assert list(found) == ["serving.md", "serving-One.svg", "serving.svg", "serving.csv"]
    text = found["serving.md"].decode()
    lead = [line for line in text.splitlines() if line.startswith("|")]
    assert lead[:4] == [
        "| scheduler | load 0.5 | load 1 | load 1.5 |",
        "| --- | ---: | ---: | ---: |",
        "| told* | 55 | – | 95 |",
        "| a | 55 | 65 | 45 |",
    ]
    assert lead[4] == "| scheduler | One, own workloads |", "loads are no columns of the costs"
    assert text.index("serving-One.svg") < text.index("serving.svg")
    assert all(f">{name}<" in found["serving-One.svg"].decode() for name in ("a", "told*"))
    held_out = msgspec.structs.replace(at_loads[2], workloads="held_out")
    for other in ([], [held_out]):
        few = ranking_pages([own, *at_loads[:2], *other], Path("docs/serving.md"))
        assert "serving-One.svg" not in few, "two loads of its own workloads make no line"


def test_a_file_without_a_bound_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    ranking = toy(path, 1)
    assert ranking.bounded == ["Toy"]
    old = msgspec.structs.replace(ranking, bounded=[], episodes=ranking.episodes[:-1])
    assert old.complete
    assert old.alone("Toy") is None
    assert "alone (bound) |" not in written_pages(old)
    path.write_bytes(encode_ranking(old))
    assert toy(path, 1, resume=True).episodes == ranking.episodes


def test_energy_has_no_bound(tmp_path: Path) -> None:
    scenario = load_scenario("Toy", reward={"turnaround": 1.0, "energy": 0.1})
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(msgspec.to_builtins(scenario)))
    ranking = rank([str(tmp_path / "own.yaml")], ["sjf"], [0], tmp_path / "ranking.json", workers=1)
    assert ranking.complete
    assert ranking.bounded == []


def test_what_was_recorded_on_another_gpu_is_marked() -> None:
    ranking = rank(["Toy"], ["sjf"], [0], gpu="a100-sxm", workers=1)
    remark = "toy_batch was recorded on toy-4sm: durations on a100-sxm are estimates"
    assert remark in html(ranking)
    assert remark in written_pages(ranking)


@pytest.mark.parametrize("seeds", [0, [], [1, 1], [-1]], ids=repr)
def test_seeds_are_checked_as_for_a_comparison(seeds: list[int], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no seed given|must be different"):
        rank(["Toy"], ["sjf"], seeds, tmp_path / "ranking.json", workers=1)
    assert list(tmp_path.iterdir()) == []


def test_another_agent_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    path = tmp_path / "ranking.json"
    ran: list[str] = []
    run_cell = RunCell.__call__

    def noting(self: RunCell, cell: RankedEpisode) -> EpisodeCost:
        ran.append(cell.scheduler)
        return run_cell(self, cell)

    monkeypatch.setattr(RunCell, "__call__", noting)
    policy = written(made_up("Toy"), tmp_path / "Toy.npz")
    agents = ["sjf", "learned"]
    first = rank(["Toy"], agents, [0], path, workers=1)
    assert first.made[0].weights == {"Toy": {"learned": hashlib.sha256(policy.read_bytes()).hexdigest()}}
    assert ran == ["sjf", "learned", "alone"]
    rank(["Toy"], agents, [0], path, workers=1, resume=True)
    assert ran == ["sjf", "learned", "alone"], "all was there"
    written(made_up("Toy", timesteps=2000), policy)
    rank(["Toy"], agents, [0], path, workers=1, resume=True)
    assert ran == ["sjf", "learned", "alone", "learned"]


def test_devices_that_differ_are_told(tmp_path: Path) -> None:
    ranking = toy(tmp_path / "ranking.json", 1, devices=["compiled", "reference"])
    last = ranking.episodes[-1]
    assert (last.cell.device, last.cell.scheduler) == ("reference", "random")
    ranking.episodes[-1] = msgspec.structs.replace(last, cost=0.5 * last.cost)
    assert device_difference(ranking, "Toy") == pytest.approx(0.5)
    assert "different orders, costs of every episode differ by 0.5 at most" in written_pages(ranking)


def test_a_page_needs_every_episode(tmp_path: Path) -> None:
    ranking = toy(tmp_path / "ranking.json", 1)
    bound = ranking.episodes.pop()
    assert not ranking.complete
    assert str(ranking) == repr(ranking), "no table of what is missing"
    with refused(InputError, "1 of 1 episode", "missing"):
        written_pages(ranking)
    ranking.episodes[-1] = bound
    with refused(InputError, "1 of 3 episodes", "missing"):
        written_pages(ranking)


def test_held_out_workloads_on_another_gpu(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    options = {"workloads": "held_out", "gpu": "h200-sxm", "workers": 1, "settings": ["horizon_us=20000"]}
    ranking = rank(["InferenceBesideTraining"], ["pass-through"], [0], path, **options)  # type: ignore[arg-type]
    assert ranking.variants == {"InferenceBesideTraining": [f"InferenceBesideTraining-held_out-{i}" for i in range(3)]}
    assert "InferenceBesideTraining, held-out workloads, h200-sxm" in written_pages(ranking)


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
        rank([scenario], ["sjf"], [0], path, **options)  # type: ignore[arg-type]
    assert not path.exists()
    path.write_text("{}")
    with refused(InputError, "ranking"):
        read_ranking(path)


def test_a_compressed_file_is_continued_and_holds_what_a_plain_one_does(tmp_path: Path) -> None:
    plain, small = tmp_path / "ranking.json", tmp_path / "ranking.json.gz"
    toy(small, 1)
    assert toy(small, 2, resume=True).episodes == toy(plain, 2).episodes
    assert gzip.decompress(small.read_bytes()) == plain.read_bytes()
    assert small.read_bytes() == gzip.compress(plain.read_bytes(), mtime=0), "equal episodes are equal bytes"
    assert read_ranking(small) == read_ranking(plain)
    small.write_bytes(small.read_bytes()[:-20])
    with pytest.raises(InputError, match="truncated gzip"):
        read_ranking(small)


def test_who_is_told_the_truth_is_marked_and_no_reference(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    ranking = rank(["Toy"], ["fifo", "sjf-clairvoyant"], [0], path, workers=1)
    assert read_ranking(path).clairvoyant == ["sjf-clairvoyant"]
    costs = ranking.costs("Toy", "compiled")
    assert costs["sjf-clairvoyant"] < costs["fifo"]
    assert ranking.cheapest("Toy") == "fifo"
    page = written_pages(ranking)
    assert "| sjf-clairvoyant* |" in page
    assert "* clairvoyant: is told the truth" in page
    assert "clairvoyant:" not in written_pages(toy(tmp_path / "toy.json", 1))


def test_fields_of_the_scenario_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    settings = ["profiles.scatter=3", "decision_us=50"]
    ranking = toy(path, 1, settings=settings)
    assert ranking.costs("Toy", "compiled")["sjf"] > toy(tmp_path / "own.json", 1).costs("Toy", "compiled")["sjf"]
    page = written_pages(ranking)
    assert "- Toy, own workloads, profiles.scatter=3, decision_us=50: 1 seed" in page
    assert "--set profiles.scatter=3 --set decision_us=50 --json" in page
    assert toy(path, 1, settings=settings, resume=True).episodes == ranking.episodes
    with refused(InputError, "4 of 4 episodes", "lost"):
        toy(path, 1, resume=True)
    with refused(InputError, "2 of 4 episodes", "seeds"):
        rank(["Toy"], ["sjf"], [0], path, workers=1, settings=settings, resume=True)
    assert read_ranking(path).episodes == ranking.episodes
    anew = toy(path, 1, resume=True, overwrite=True)
    assert anew.episodes != ranking.episodes, "other episodes are not kept"


def test_a_replay_says_what_came_out_otherwise() -> None:
    ranking = rank("Toy", ["pass-through", "sjf"], 2)
    now = field_of(ranking)
    everything = replay(ranking, now, first_cells(ranking, 5), workers=1)
    assert (everything.episodes, everything.close, everything.differences) == (6, 0, []), "with every tenant alone, too"
    first = ranking.episodes[0]
    ranking.episodes[0] = msgspec.structs.replace(first, cost=first.cost * (1.0 - 2e-12), jobs_rejected=None)
    found = replay(ranking, now, first_cells(ranking, 1), workers=1)
    assert (found.episodes, found.close) == (3, 0)
    (difference,) = found.differences
    assert (difference.episode, difference.figure, difference.played) == (first.cell, "cost", first.cost)


def test_an_interrupted_replay_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "toy.json"
    toy(path, 1)
    run_cell, ran = RunCell.__call__, []

    def interrupted(self: RunCell, cell: RankedEpisode) -> EpisodeCost:
        ran.append(cell)
        if len(ran) > 3:
            raise KeyboardInterrupt
        return run_cell(self, cell)

    monkeypatch.setattr(RunCell, "__call__", interrupted)
    done = CliRunner().invoke(app, ["lab", "replay", str(path), str(path), "--workers", "1"])
    assert done.exit_code == 130
    assert f"{path}: 3 episodes; interrupted\n3 episodes of 2 files" in done.stdout


@pytest.mark.parametrize(("factor", "close", "code"), [(1.0, 0, 0), (1.0 - 4e-16, 1, 0), (1.0 - 2e-12, 0, 1)])
def test_a_replay_bears_what_another_processor_rounds_otherwise(
    factor: float, close: int, code: int, tmp_path: Path
) -> None:
    path = tmp_path / "toy.json"
    ranking = toy(path, 1)
    figures = replay(ranking, field_of(ranking), first_cells(ranking, 1), workers=1).exact
    first = ranking.episodes[0]
    ranking.episodes[0] = msgspec.structs.replace(first, cost=first.cost * factor)
    path.write_bytes(encode_ranking(ranking))
    done = CliRunner().invoke(app, ["lab", "replay", str(path), "--workers", "1"])
    assert done.exit_code == code
    exact = figures - (factor != 1.0)
    assert f"to the last bit: {exact}; equal within a relative 1e-12 only: {close}\n" in done.stdout
