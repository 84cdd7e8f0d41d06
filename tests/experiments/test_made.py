"""Result files know what made their episodes: resumed, compared and replayed by that."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from gpusched_env.baselines.registry import SCHEDULERS
from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.games.kernels import PLAY
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.ranking.made import (
    Fingerprints,
    check_together,
    closure_of,
    data_hash,
    made_by,
    made_by_training,
    origin_of,
)
from gpusched_env.experiments.ranking.pages import sweeps
from gpusched_env.experiments.ranking.replay import ReplayOfFiles
from gpusched_env.experiments.ranking.result import Ranking, encode_ranking, read_ranking, read_rankings
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.sources import ROOT
from tests.refusals import refused

OWN = """from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.sjf import ShortestJobFirst
from hashed_helper import AVERAGE

class Own(PassThrough):
    '''Mine.'''
    average = AVERAGE
"""
FILE = Path("ranking.json")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "hashed_helper.py").write_text("AVERAGE = 0.5\n")
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def edit(name: str, old: str, new: str) -> None:
    file = Path(name)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def toy(seeds: int = 1, scenario: str = "Toy", **options: object) -> Ranking:
    return rank([scenario], ["own.py:Own", "sjf"], seeds, FILE, workers=1, **options)  # type: ignore[arg-type]


def resumed(scenario: str = "Toy") -> tuple[str, float]:
    """What it says, and what the first episode of the user's scheduler costs."""
    said: list[str] = []
    ranking = toy(scenario=scenario, resume=True, on_resumed=said.append)
    return said[0], ranking.costs(scenario, "compiled")["own.py:Own"].item()


@pytest.mark.usefixtures("place")
def test_an_edited_scheduler_is_played_again_and_others_are_kept() -> None:
    toy()
    kept = "ranking.json: 3 episodes kept"
    assert resumed() == (kept, 1.23)
    edit("own.py", "'''Mine.'''", "'''Mine and nobody else's.'''  # Really.")
    assert resumed() == (kept, 1.23)
    again = "ranking.json: 2 episodes kept; 1 episode to be played again: scheduler differs"
    edit("hashed_helper.py", "0.5", "0.25")
    assert resumed() == (again, 1.23), "another value might have cost something else"
    edit("own.py", "Own(PassThrough)", "Own(ShortestJobFirst)")
    assert resumed() == (again, 1.14)
    assert resumed() == (kept, 1.14)


@pytest.mark.usefixtures("place")
def test_an_edited_scenario_is_played_again() -> None:
    Path("my.yaml").write_bytes(msgspec.yaml.encode(load_scenario("Toy")))
    toy(scenario="my.yaml")
    edit("my.yaml", "horizon_us: 2000", "horizon_us: 300")
    said, cost = resumed("my.yaml")
    assert said == "ranking.json: 0 episodes kept; 3 episodes to be played again: data differs"
    assert cost == 1.83


def test_a_trace_counts_by_what_is_in_it_wherever_it_lies(tmp_path: Path) -> None:
    found = []
    for folder, text in (("a", "time_us\n1\n"), ("b", "time_us\n1\n"), ("c", "time_us\n2\n")):
        trace = tmp_path / folder / "asked.csv"
        trace.parent.mkdir()
        trace.write_text(text)
        asked = {"kind": "trace", "file": str(trace)}
        found.append(data_hash(load_scenario("Toy", tenants={"urgent": {"arrivals": asked}})))
    assert found[0] == found[1]
    assert found[0] != found[2]


def hash_now(name: str, scenario: str = "InferenceBesideTraining") -> str:
    made = new_scheduler(name, load_scenario(scenario))
    origin = origin_of(name, made, SCHEDULERS, scenario)
    found = made_by({"compiled": ["gpusched_env.hardware.contention"]}, {scenario: {name: origin}})
    return found.schedulers[scenario][name]


def test_options_change_a_hash_and_where_they_come_from_does_not() -> None:
    names = [
        "mps",
        "mps(urgent_share=50)",
        "mps(urgent_share=60)",
        "interval:edf",
        "edf",
        "interval:edf(interval_us=9)",
    ]
    assert len({hash_now(name) for name in names}) == len(names)
    assert hash_now("tuned:orion") != hash_now("orion")
    assert hash_now("mps(urgent_share=50, other_share=20)") == hash_now("mps(other_share=20,urgent_share=50)")
    assert hash_now("learned") != hash_now("learned(interval_us=500)")


def test_a_search_stands_on_its_portfolio() -> None:
    files = {portfolio: files_of(f"hindsight(portfolio={portfolio})") for portfolio in ("edf", "fifo+edf")}
    assert files["fifo+edf"] - files["edf"] == {"fifo.py", "in_flight.py"}
    assert "fifo.py" not in files["edf"], "the registry lists all schedulers"


def files_of(name: str) -> set[str]:
    roots = origin_of(name, new_scheduler(name), SCHEDULERS, "Toy").roots
    return {path.name for path in closure_of(roots)}


def test_what_the_physics_are() -> None:
    for device in ("compiled", "reference"):
        files = {str(path.relative_to(ROOT)) for path in closure_of([f"gpusched_env.devices.{device}.device", *PLAY])}
        laws = {"hardware/contention.py", "hardware/solo.py", "workload/host/threads.py", "scheduling/legality.py"}
        costs = {"episodes/metrics.py", "scheduling/reward.py", "scenarios/building.py"}
        assert laws | costs | {"data/calibration/products.json", "workload/tenant.py"} <= files
        other = {"compiled": "reference", "reference": "compiled"}[device]
        apart = (
            f"devices/{other}",
            "devices/cuda",
            "display",
            "workload/importers",
            "experiments",
            "baselines",
            "agents",
        )
        assert not [file for file in files if file.startswith(apart)]


def marked(ranking: Ranking, places: list[int]) -> None:
    """The file, with episodes at some places of other physics."""
    first = ranking.made[0]
    ranking.made = [first, msgspec.structs.replace(first, physics={"compiled": "other"})]
    for place in places:
        ranking.episodes[place] = msgspec.structs.replace(ranking.episodes[place], made=1)
    FILE.write_bytes(encode_ranking(ranking))


@pytest.mark.usefixtures("place")
def test_mixed_files_are_refused_by_pages_and_bridged_by_notes() -> None:
    marked(toy(2), [4])
    message = r"ranking.json: sjf on Toy, seed 1: made by other physics than others that it is compared with"
    with pytest.raises(InputError, match=message):
        read_rankings([FILE])
    done = CliRunner().invoke(app, ["lab", "page", "rankings", "ranking.json", "--docs", "page.md"])
    assert isinstance(done.exception, InputError)
    assert not Path("page.md").exists()
    ranking = read_ranking(FILE)
    ranking.episodes[4] = msgspec.structs.replace(ranking.episodes[4], again=0)
    FILE.write_bytes(encode_ranking(ranking))
    assert list(read_rankings([FILE])) == [FILE]


def command(*options: str, code: int = 0) -> list[str]:
    done = CliRunner().invoke(app, ["lab", "replay", "ranking.json", "--workers", "1", *options])
    assert done.exit_code == code, done.output
    return done.stdout.splitlines()


@pytest.mark.usefixtures("place")
def test_notes_add_up_until_all_episodes_stand_for_what_is_there() -> None:
    ranking = toy(3)
    whole = FILE.read_bytes()
    FILE.write_bytes(encode_ranking(msgspec.structs.replace(ranking, made=[])))
    unknown = "what made them is not known"
    assert command("--stale", code=1)[:2] == [
        f"ranking.json: Toy, own.py:Own: 3 of 3 episodes: {unknown}",
        f"ranking.json: Toy, sjf: 3 of 3 episodes: {unknown}",
    ]
    assert command("--note", "--seeds", "1")[:2] == [
        "ranking.json: 3 episodes",
        "ranking.json: 0 replaced by what was played; 6 episodes left to be played or replaced",
    ]
    assert read_ranking(FILE).made == [Fingerprints(), ranking.made[0]]
    assert list(read_rankings([FILE])) == [FILE], "all are as they were written"
    assert command("--stale", code=1)[0] == f"ranking.json: Toy, own.py:Own: 2 of 3 episodes: {unknown}"
    assert command("--note")[0] == "ranking.json: 6 episodes"
    assert FILE.read_bytes() == whole
    assert command("--note")[0] == "ranking.json: 0 episodes"
    assert command("--stale") == ["0 episodes of 1 file to be played again"]


@pytest.mark.usefixtures("place")
def test_what_comes_out_otherwise_is_told_and_replaced_only_when_asked() -> None:
    ranking = toy(2)
    right = FILE.read_bytes()
    first = ranking.episodes[0]
    ranking.episodes[0] = msgspec.structs.replace(first, cost=first.cost * (1.0 + 4e-16))
    second = ranking.episodes[1]
    ranking.episodes[1] = msgspec.structs.replace(second, cost=2.0 * second.cost)
    marked(ranking, list(range(6)))
    wrong = read_ranking(FILE).episodes
    lines = command("--note", code=1)
    assert (
        lines[0]
        == f"ranking.json: Toy, sjf, device compiled, seed 0: cost is {2.0 * second.cost!r} in the file, 1.14 now"
    )
    assert lines[2].endswith("0 replaced by what was played; 2 episodes left to be played or replaced")
    assert [e.cost for e in read_ranking(FILE).episodes] == [e.cost for e in wrong]
    assert command("--note", "--replace")[2].endswith(
        "2 replaced by what was played; 0 episodes left to be played or replaced"
    )
    assert FILE.read_bytes() == right


@pytest.mark.usefixtures("place")
def test_a_file_of_what_is_there_no_longer_is_named() -> None:
    FILE.write_bytes(encode_ranking(msgspec.structs.replace(toy(), schedulers=["own.py:Gone"])))
    for option in ("--stale", "--note"):
        done = CliRunner().invoke(app, ["lab", "replay", "ranking.json", option])
        assert isinstance(done.exception, InputError)
        assert str(done.exception).startswith("ranking.json: 'own.py:Gone': own.py has no 'Gone'")


@pytest.mark.usefixtures("place")
def test_a_sample_is_of_all_files_and_another_with_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    toy(3)
    Path("more.json").write_bytes(FILE.read_bytes())
    files = [FILE, Path("more.json")]
    drawn: list[tuple[Path, str, int]] = []
    monkeypatch.setattr(
        ReplayOfFiles,
        "_replay",
        lambda self, file, cells: drawn.extend((file, cell.scheduler, cell.seed) for cell in cells),
    )

    def sample(number: int, draw: str) -> list[tuple[Path, str, int]]:
        drawn.clear()
        ReplayOfFiles(workers=1, note=False, replace=False, tell=print).sample(files, number, draw)
        return list(drawn)

    assert sample(5, "a") == sample(5, "a") != sample(5, "b")
    assert len(sample(5, "a")) == len(set(sample(5, "a"))) == 5
    assert set(sample(100, "a")) == {(f, s, n) for f in files for s in ("own.py:Own", "sjf", "alone") for n in range(3)}


@pytest.mark.usefixtures("place")
def test_a_search_for_options_goes_on_by_the_same_sources_only() -> None:
    from gpusched_env.experiments.tuning.search import tune

    def search(budget: int = 1) -> tuple[float, list[str]]:
        said: list[str] = []
        found = tune("PriorityFill", ["own.py:Own"], budget, path=FILE, workers=1, resume=True, on_resumed=said.append)
        return found.trials["own.py:Own"][0].cost, said

    cost, _ = search()
    before = FILE.read_bytes()
    assert search()[0] == cost
    edit("own.py", "Own(PassThrough)", "Own(ShortestJobFirst)")
    with refused(InputError, "ranking.json", "budget"):
        search(2)
    assert FILE.read_bytes() == before
    again, said = search()
    assert again != cost
    assert any("own.py:Own" in line for line in said)


def test_loads_are_compared_by_the_same_sources_only() -> None:
    made = [Fingerprints(physics={"compiled": "a"}), Fingerprints(physics={"compiled": "b"})]

    def at(load: float, number: int) -> Ranking:
        cell = RankedEpisode("Toy", "Toy", "sjf", "compiled", 0)
        return Ranking(
            **{"command": "", "versions": {}, "workloads": "own", "gpu": None, "schedulers": ["sjf"]},
            **{"devices": ["compiled"], "seeds": [0], "variants": {"Toy": ["Toy"]}, "settings": [f"load={load}"]},
            made=made,
            episodes=[EpisodeCost(cell, 1.0, made=number)],
        )

    assert list(sweeps([at(0.5, 1), at(1.0, 1), at(1.5, 1)])) == ["Toy"]
    with refused(InputError, "load 1.5", "seed 0"):
        sweeps([at(0.5, 0), at(1.0, 0), at(1.5, 1)])


@pytest.mark.usefixtures("place")
def test_files_that_contradict_themselves_are_refused() -> None:
    ranking = toy()
    ranking.episodes.append(ranking.episodes[0])
    FILE.write_bytes(encode_ranking(ranking))
    with refused(InputError, "ranking.json", "own.py:Own", "seed 0"):
        read_ranking(FILE)
    ranking.episodes = [msgspec.structs.replace(ranking.episodes[0], again=2)]
    FILE.write_bytes(encode_ranking(ranking))
    with refused(InputError, "is 2", "has 1"):
        read_ranking(FILE)


# ---- files beside each other --------------------------------------------------------------------------------------


def test_files_of_different_sources_are_refused_and_those_of_unknown_ones_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = Fingerprints(physics={"compiled": "a"}, schedulers={"Toy": {"fifo": "b"}}, data={"Toy": {"Toy": "c"}})
    check_together(
        {"first": first, "old": Fingerprints(), "same": first, "more": Fingerprints(schedulers={"Toy": {"orion": "d"}})}
    )
    assert capsys.readouterr().err == "gpusched: 1 of 4 files do not say what made them\n"
    for part, other in (
        (r"physics \(compiled\)", {"physics": {"compiled": "b"}}),
        (r"scheduler \(Toy, fifo\)", {"schedulers": {"Toy": {"fifo": "c"}}}),
        (r"data \(Toy, Toy\)", {"data": {"Toy": {"Toy": "d"}}}),
    ):
        changed = msgspec.structs.replace(first, **other)
        with pytest.raises(InputError, match=f"second: made by other {part} than first; make one of them again"):
            check_together({"first": first, "second": changed})


@pytest.mark.parametrize("name", ["Toy", "DynamicParallelism"])
def test_a_training_is_made_by_its_trainer_and_scenario(name: str) -> None:
    config = game_of(name).configured(name, {}, None)
    made = made_by_training(config)
    assert made.physics.keys() == {"training"}
    assert (name in made.data) == (name == "Toy")
    other = made_by_training(game_of("TaskQueue").configured("TaskQueue", {}, None))
    assert other.physics != made.physics
