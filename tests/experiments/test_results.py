"""The page of results: verdicts from intervals, which result file counts, what is refused, and the whole from files."""

from __future__ import annotations

import csv
import itertools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from gpusched_env.agents import shipped
from gpusched_env.agents.manifest import read_manifest
from gpusched_env.baselines import tuning
from gpusched_env.baselines.tuning import FIRST_SEED, Trial, Tuning
from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import main
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.experiments.ranking.result import Ranking, encode_ranking
from gpusched_env.experiments.results.page import check_policies, has_trade, page, trade_svg, tuned_table
from gpusched_env.experiments.results.summary import Summary, check_opponents, of_record
from tests.agents.made_up import made_up, written
from tests.experiments.trainings import training
from tests.refusals import refused

Run = Callable[..., int]
MANY = {"learned": [9.0, 10.0, 11.0, 12.0], "sjf": [10.0, 11.0, 12.0, 13.0], "alone": [8.0, 8.0, 8.0, 8.0]}
FEW = {"sjf": [10.0, 11.0], "fifo": [20.0, 20.0], "reef": [10.0, 12.0]}


def ranked(costs: Mapping[str, Sequence[float]], **changes: object) -> Ranking:
    """A ranking on Toy, its seeds from 0."""
    seeds = list(range(len(next(iter(costs.values())))))
    ranking = Ranking(
        command="",
        versions={},
        workloads="own",
        gpu=None,
        schedulers=[name for name in costs if name != "alone"],
        devices=["compiled"],
        seeds=seeds,
        variants={"Toy": ["Toy"]},
        bounded=["Toy"] if "alone" in costs else [],
        episodes=[
            EpisodeCost(RankedEpisode("Toy", "Toy", name, "compiled", n), costs[name][n])
            for n in seeds
            for name in costs
        ],
    )
    return msgspec.structs.replace(ranking, **changes)


def judged(rankings: Mapping[str, Ranking]) -> list[Summary]:
    found = of_record(rankings)
    check_opponents(found, list(rankings.values()))
    return found


def test_the_file_with_the_most_seeds_counts() -> None:
    fewer = ranked({"learned": [30.0, 30.0], **FEW})
    (found,) = judged({"fewer": fewer, "many": ranked(MANY)})
    agent, best = found.best("agent"), found.best("rule")
    assert agent is not None
    assert best is not None
    assert (found.file, agent.scheduler, best.scheduler) == ("many", "learned", "sjf")
    assert (agent.mean.mean, best.mean.mean) == (10.5, 11.5)
    assert agent.against.mean == pytest.approx(10.5 / 11.5 - 1.0)
    assert agent.improvement.mean == 1.0
    assert found.verdict == "better"
    (alone,) = judged({"fewer": fewer})
    assert alone.verdict == "worse than `sjf`"


@pytest.mark.parametrize("agent", [[9.0, 11.5, 11.0, 13.5], [10.0, 11.0, 12.0, 13.0]])
def test_an_interval_that_has_0_in_it_shows_nothing(agent: list[float]) -> None:
    (found,) = judged({"a": ranked({**MANY, "learned": agent})})
    assert found.verdict == "no difference shown"


def test_sets_of_workloads_and_gpus_are_kept_apart() -> None:
    held_out, elsewhere = ranked(MANY, workloads="held_out"), ranked(MANY, gpu="h200-sxm")
    found = judged({"c": elsewhere, "b": held_out, "a": ranked(MANY), "few": ranked(FEW)})
    assert [(row.file, row.ranking.workloads, row.ranking.gpu) for row in found] == [
        ("a", "own", None),
        ("b", "held_out", None),
        ("c", "own", "h200-sxm"),
    ]


def test_the_best_scheduler_of_all_must_be_beside_the_agent() -> None:
    better = ranked({"sjf": [10.0] * 5, "reef": [9.0] * 5})
    message = "many: Toy, own workloads: the agent was not ranked beside reef, the best of 5 seeds; rank it there too"
    with pytest.raises(InputError, match=message):
        judged({"many": ranked(MANY), "better": better})


def test_there_must_be_an_agent() -> None:
    for costs in (FEW, {"learned": [1.0, 1.0]}):
        with refused(InputError, "all.json", "scheduler"):
            page({"all.json": ranked(costs)}, {}, [], Path("results.md"))


@pytest.fixture
def gpusched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command line in this process, in an empty folder that agents are shipped in; returns the exit status."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "trained")
    (tmp_path / "trained").mkdir()

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["gpusched", *arguments])
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    return run


def test_from_trainings_to_the_page(gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, costs in enumerate([[5.0, 1.2, 1.04], [3.0, 1.4, 1.16]]):
        written(made_up("Toy"), training(tmp_path / "runs" / f"toy-{seed}", costs, seed=seed) / "best.npz")
    assert gpusched("lab", "curves", "runs/toy-0", "runs/toy-1", "--json", "curves.json") == 0
    assert "Toy, 2 seeds, 2,000 decisions: mean cost 1.1 [1.04, 1.16]" in capsys.readouterr().out
    assert gpusched("lab", "ship", "runs/toy-0") == 0
    sha = read_manifest(tmp_path / "trained" / "Toy.json").sha256
    (tmp_path / "many.json").write_bytes(
        encode_ranking(ranked(MANY, made=[Fingerprints(weights={"Toy": {"learned": sha}})]))
    )
    (tmp_path / "all.json").write_bytes(encode_ranking(ranked(FEW)))
    command = (
        "lab",
        "page",
        "results",
        "many.json",
        "all.json",
        "--curves",
        "curves.json",
        "--docs",
        "docs/results.md",
    )
    assert gpusched(*command) == 0
    written_page = (tmp_path / "docs" / "results.md").read_text()
    summary = (
        "| Toy | own | 4 seeds | – | `sjf` 11.500 | – | learned by reinforcement, maskable-ppo 10.500 | "
        "-8.7% [-9.5%, -8.0%] | better | 1.00 [1.00, 1.00] | 8 |"
    )
    assert summary in written_page
    rows = list(csv.DictReader((tmp_path / "docs" / "results.csv").read_text().splitlines()))
    assert [seeds for seeds, _ in itertools.groupby(row["seeds"] for row in rows)] == ["4", "2"], "most seeds first"
    assert "- Toy, own workloads: 2 seeds (from 0) of the scenario." in written_page
    assert "maskable-ppo with policy mlp, 2,000 decisions, 2 seeds (0, 1); 2 validation episodes" in written_page
    assert "Best of each seed: 1.04, 1.16. Best hand-written scheduler: sjf, 1.14; 1 of 2 seeds got below it" in (
        written_page
    )
    assert f"SHA-256 of `Toy.npz`: `{sha}`" in written_page
    assert "Seed 0, 2,000 decisions, with gpusched-env 1.0:" in written_page
    assert written_page.endswith(
        "gpusched lab rank Toy --schedulers learned,sjf --seeds 4 --seed 0 --workloads own --simulators compiled "
        "--json many.json\n"
        "gpusched lab rank Toy --schedulers sjf,fifo,reef --seeds 2 --seed 0 --workloads own --simulators compiled "
        "--json all.json\n"
        "gpusched train Toy --seed 0 --out runs/toy-0\n"
        "gpusched train Toy --seed 1 --out runs/toy-1\n"
        "gpusched lab curves runs/toy-0 runs/toy-1 --json curves.json\n"
        "gpusched lab page results many.json all.json --curves curves.json --docs docs/results.md\n"
        "```\n"
    )
    assert "](results-Toy.svg)" in written_page
    pictures = {file.name: file.read_bytes() for file in (tmp_path / "docs").glob("*.svg")}
    assert list(pictures) == ["results-Toy.svg"]
    assert gpusched(*command) == 0
    assert {file.name: file.read_bytes() for file in (tmp_path / "docs").glob("*.svg")} == pictures
    assert (tmp_path / "docs" / "results.md").read_text() == written_page


def test_a_ranking_of_another_agent_is_refused(
    gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(made_up("Toy"), training(tmp_path / "run", [1.0]) / "best.npz")
    assert gpusched("lab", "ship", "run") == 0
    (tmp_path / "many.json").write_bytes(
        encode_ranking(ranked(MANY, made=[Fingerprints(weights={"Toy": {"learned": "0" * 64}})]))
    )
    assert gpusched("lab", "page", "results", "many.json", "--docs", "docs/results.md") == 2
    assert "many.json: ranks another agent for Toy (SHA-256 000000000000...)" in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()


def test_an_agent_of_a_scenario_s_own_goes_before_one_that_is_for_several() -> None:
    made = read_manifest(shipped.FOLDER / "ServingPoisson.json")
    family = msgspec.structs.replace(made, scenario="Several", also=("Toy",), sha256="1" * 64)
    own = msgspec.structs.replace(made, scenario="Toy", also=(), sha256="0" * 64)
    ranking = ranked(MANY, made=[Fingerprints(weights={"Toy": {"learned": "0" * 64}})])
    check_policies({"many.json": ranking}, [family, own])
    with refused(InputError, "ranks"):
        check_policies({"many.json": ranking}, [family])


TUNED = Tuning(
    command="gpusched tune Toy",
    versions={},
    scenario="Toy",
    variants=["Toy-train-0"],
    seeds=[FIRST_SEED],
    budget=2,
    seed=0,
    trials={
        "sjf": [Trial(spec="sjf", cost=3.0)],
        "reef": [Trial(spec="reef", cost=4.0), Trial(spec="reef(depth=4)", drawn={"depth": 4}, cost=2.0)],
    },
)


KNOWN = {
    "reef": ["priorities, requests, profiles, shapes, completions, progress", "preempt"],
    "sjf": ["requests, profiles, completions", "launch"],
}
"""What they read and may do, as their classes declare."""


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reef with tuned options was the cheapest rule on training workloads."""
    monkeypatch.setattr(tuning, "FOLDER", tmp_path / "tuned")
    path = tmp_path / "tuned" / "Toy.json"
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(TUNED))
    return path


def test_the_default_competes_where_the_tuned_rule_is_worse(tuned: Path) -> None:
    """And the rule that was best on training workloads has to be there, though others may judge."""
    (found,) = judged({"a": ranked({**MANY, "tuned:reef": [11.0, 12.0, 13.0, 14.0]})})
    assert found.strongest == "sjf"
    with refused(InputError, "workloads"):
        judged({"a": ranked(MANY)})


def test_what_tuning_changed_on_workloads_that_it_did_not_see(tuned: Path) -> None:
    costs = {"reef": [10.0, 20.0], "tuned:reef": [9.0, 18.0], "sjf": [11.0, 11.0]}
    own, held_out = ranked(MANY), ranked(costs, workloads="held_out")
    table = tuned_table(TUNED, [own, held_out])
    assert [list(map(str, row)) for row in table.rows] == [
        ["reef", "4", "2", "-50.0%", "-10.0% [-10.0%, -10.0%]", "depth=4", *KNOWN["reef"]],
        ["sjf", "3", "–", "–", "–", "nothing to tune", *KNOWN["sjf"]],
    ]
    assert {str(row[4]) for row in tuned_table(TUNED, [own]).rows} == {"–"}


def test_the_plane_of_protection_and_throughput(tuned: Path) -> None:
    costs = {**MANY, "reef": [11.0] * 4, "tuned:reef": [10.5] * 4}
    placed = ranked(costs, made=[])
    points = {"sjf": (4.0, 0.9), "reef": (1.5, 0.4), "tuned:reef": (1.2, 0.6), "learned": (1.1, 0.7)}
    placed.episodes = [
        msgspec.structs.replace(
            e, urgent_p99=points[e.cell.scheduler][0], best_effort=points[e.cell.scheduler][1], goodput_per_s=None
        )
        if e.cell.scheduler in points
        else e
        for e in placed.episodes
    ]
    assert not has_trade(ranked(costs), "Toy")
    assert has_trade(placed, "Toy")
    assert placed.trade("Toy")["reef"]["urgent_p99"].mean == 1.5
    drawn = trade_svg(placed, "Toy")
    assert drawn == trade_svg(placed, "Toy")
    for label in (b">sjf<", b">reef<", b">learned<", b"hollow: default"):
        assert label in drawn
    assert b">tuned:reef<" not in drawn, "a filled mark of reef"
    assert max(float(number) for number in re.findall(rb">([\d.]+)</text>", drawn)) == 5.0, "above the highest, 4"
    text, pictures = page({"all.json": placed}, {}, [], Path("results.md"))
    assert pictures["results-Toy-trade.svg"] == drawn
    assert "](results-Toy-trade.svg)" in text
    assert f"| reef | 4 | 2 | -50.0% | – | depth=4 | {' | '.join(KNOWN['reef'])} |" in text
    assert text.index("## Summary") < text.index("trade.svg") < text.index("## Tuned")
    rows = list(csv.DictReader(pictures["results.csv"].decode().splitlines()))
    (row,) = (row for row in rows if row["scheduler"] == "tuned:reef")
    assert (row["urgent_p99"], row["best_effort"]) == ("1.20", "0.600")
    assert "goodput_per_s" not in row, "no tenant has an objective"
    assert "gpusched tune Toy" in text
