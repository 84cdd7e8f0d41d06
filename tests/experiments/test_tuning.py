"""The search for options: equal budgets, never worse than the defaults, the same when it goes on, and its names."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from gpusched_env.baselines import tuning as shipped
from gpusched_env.baselines.ranges import Choice, Range, ranges_of
from gpusched_env.baselines.registry import default_options, make_scheduler, scheduler_names
from gpusched_env.baselines.tuning import FIRST_SEED, Trial, Tuning, tuned_spec, tuning_for
from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.lib.names import (
    USUAL,
    all_schedulers,
    default_schedulers,
    describe_scheduler,
    expanded,
    new_scheduler,
)
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.tuning.table import tuning_table
from gpusched_env.games.child_launches.baselines.registry import (
    LAUNCH_SCHEDULERS,
    make_launch_scheduler,
)
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.environment.requests import flat_ps
from gpusched_env.games.child_launches.problem import launch_problem
from gpusched_env.games.child_launches.scheduler import run_application
from gpusched_env.games.child_launches.workload.suite import random_benchmark
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scenarios.variants import family, scenario_variants
from tests.refusals import refused

SPACE = {"size": Range(1, 64, log=True), "share": Range(0.0, 1.0), "mode": Choice(("slow", "fast", None))}


@pytest.mark.parametrize("name", [*scheduler_names(), *LAUNCH_SCHEDULERS.names()])
def test_ranges_name_options_and_hold_their_defaults(name: str) -> None:
    from gpusched_env.experiments.tuning.search import defaults_in, next_trial, spec_of

    of_launches = name in LAUNCH_SCHEDULERS.names()
    make: Callable[[str], object] = make_launch_scheduler if of_launches else make_scheduler
    ranges = ranges_of(make(name))
    defaults = LAUNCH_SCHEDULERS.options(name) if of_launches else default_options(name)
    for option, space in ranges.items():
        assert option in defaults
        # None is what the GPU or the scenario says.
        known = defaults[option] is None or space.holds(defaults[option])
        assert known, f"{name}: {option}={defaults[option]} is outside of {space}"
    if ranges:
        # What the search writes, the registry reads.
        drawn = next_trial(name, ranges, [Trial(spec=name, drawn=defaults_in(ranges, defaults), cost=1.0)], 8, 0)
        make(spec_of(name, drawn))


def test_draws_fit_their_ranges_and_repeat() -> None:
    from gpusched_env.experiments.tuning.search import next_trial, spec_of

    trials = [Trial(spec="x", drawn={"size": 8, "share": 0.5, "mode": "slow"}, cost=3.0)]
    for _ in range(30):
        drawn = next_trial("x", SPACE, trials, 30, 0)
        assert drawn == next_trial("x", SPACE, trials, 30, 0)
        assert isinstance(drawn["size"], int)
        assert SPACE["size"].holds(drawn["size"])
        assert SPACE["share"].holds(drawn["share"])
        assert drawn["mode"] in ("slow", "fast", "none")
        trials.append(Trial(spec=spec_of("x", drawn), drawn=drawn, cost=float(drawn["size"])))
    assert len({trial.spec for trial in trials}) > 20
    assert next_trial("y", SPACE, trials, 30, 0) != next_trial("x", SPACE, trials, 30, 0), (
        "searches of different schedulers draw apart"
    )
    sizes = [int(trial.drawn["size"]) for trial in trials[1:]]
    assert statistics.median(sizes[12:]) < statistics.median(sizes[:12]), "it learns that small ones are cheap"


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    """PriorityFill with two training workloads, for 20 ms."""
    loaded = load_scenario("PriorityFill", horizon_us=20_000.0)
    assert loaded.workload_sets is not None
    few = msgspec.structs.replace(loaded.workload_sets, train=loaded.workload_sets.train[:2])
    return msgspec.structs.replace(loaded, workload_sets=few)


NAMES = ("exclusive", "preemptive-priority")


@pytest.fixture(scope="module")
def tuning(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    from gpusched_env.experiments.tuning.search import tune

    return tune(scenario, NAMES, 4, path=tmp_path_factory.mktemp("tuning") / "whole.json", workers=1)


def test_budgets_are_equal_and_defaults_come_first(scenario: Scenario, tuning: Tuning) -> None:
    assert {name: len(trials) for name, trials in tuning.trials.items()} == {"exclusive": 1, "preemptive-priority": 4}
    assert tuning.variants == ["PriorityFill-train-0", "PriorityFill-train-1"]
    assert tuning.seeds == [FIRST_SEED]
    problems = [build_problem(variant) for variant in scenario_variants(scenario, "train")]
    for name, trials in tuning.trials.items():
        assert trials[0].spec == name
        assert tuning.best(name).cost <= trials[0].cost
        for trial in trials:
            costs = [play(trial.spec, problem, FIRST_SEED).metrics.cost for problem in problems]
            assert trial.cost == pytest.approx(statistics.fmean(costs), rel=1e-12)


def test_a_search_that_goes_on_finds_the_same(scenario: Scenario, tuning: Tuning, tmp_path: Path) -> None:
    from gpusched_env.experiments.tuning.search import tune

    path = tmp_path / "part.json"
    rounds: list[int] = []

    def stop(done: int, share: float) -> None:
        rounds.append(done)
        if share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(scenario, NAMES, 4, path=path, workers=1, on_progress=stop)
    kept = msgspec.json.decode(path.read_bytes(), type=Tuning)
    assert len(kept.trials["preemptive-priority"]) == 2, "whole rounds"
    again = tune(scenario, NAMES, 4, path=path, workers=1, resume=True)
    assert again.trials == tuning.trials
    with refused(InputError, "search"):
        tune(scenario, NAMES, 5, path=path, workers=1, resume=True)


def test_schedulers_are_added_to_a_search(scenario: Scenario, tuning: Tuning, tmp_path: Path) -> None:
    from gpusched_env.experiments.tuning.search import tune

    path, said = tmp_path / "grown.json", list[str]()
    tune(scenario, NAMES[1:], 4, path=path, workers=1, command="gpusched tune A")
    grown = tune(
        scenario, NAMES[:1], 4, path=path, workers=1, resume=True, on_resumed=said.append, command="gpusched tune B"
    )
    assert grown.trials == tuning.trials
    assert grown.made == tuning.made
    assert grown.command == "gpusched tune A\ngpusched tune B"
    assert said == [f"{path}: trials of 1 scheduler kept"]


def test_a_search_of_which_no_hashes_are_known_is_added_to_and_says_so(
    scenario: Scenario, tuning: Tuning, tmp_path: Path
) -> None:
    """As the shipped ones are."""
    from gpusched_env.experiments.tuning.search import tune

    path, said = tmp_path / "grown.json", list[str]()
    kept = {"preemptive-priority": tuning.trials["preemptive-priority"]}
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(tuning, made={}, trials=kept)))
    grown = tune(scenario, ["exclusive"], 4, path=path, workers=1, resume=True, on_resumed=said.append)
    assert grown.trials == tuning.trials
    hashed = grown.made["schedulers"][scenario.name]
    assert ("exclusive" in hashed, "preemptive-priority" in hashed) == (True, False)
    (line,) = said
    assert "what made those of preemptive-priority is not known" in line
    tune(scenario, ["exclusive"], 4, path=path, workers=1, resume=True, on_resumed=said.append)
    assert said[-1] == line.replace("1 scheduler kept", "2 schedulers kept"), "nor is it at the next resuming"


def test_what_another_scheduler_or_physics_made_is_searched_again(
    scenario: Scenario, tuning: Tuning, tmp_path: Path
) -> None:
    from gpusched_env.experiments.tuning.search import tune

    path, said = tmp_path / "old.json", list[str]()
    for part in ("scheduler", "physics"):
        made = msgspec.json.decode(msgspec.json.encode(tuning.made))
        if part == "scheduler":
            made["schedulers"][scenario.name]["exclusive"] = "0" * 12
        else:
            made["physics"]["compiled"] = "0" * 12
        trials = {name: [Trial(spec=name, cost=1.0)] * len(of) for name, of in tuning.trials.items()}
        trials |= {"preemptive-priority": tuning.trials["preemptive-priority"]} if part == "scheduler" else {}
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(tuning, made=made, trials=trials)))
        found = tune(scenario, NAMES, 4, path=path, workers=1, resume=True, on_resumed=said.append)
        assert found.trials == tuning.trials
        assert found.made == tuning.made
        assert f"since another {part} made them: exclusive" in said[-1]


@pytest.mark.parametrize("name", ["ServingBestEffort", "DynamicParallelism"])
def test_shipped_searches_can_be_added_to(name: str) -> None:
    """They are of the variants and seeds of now."""
    found = msgspec.json.decode((shipped.FOLDER / f"{name}.json").read_bytes(), type=Tuning)
    field = game_of(found.scenario).tuned(found.scenario, list(found.trials), min(found.seeds), len(found.seeds))
    assert field.grid.variants == {found.scenario: found.variants}
    assert field.seeds == found.seeds


def test_what_cannot_be_tuned_is_told(scenario: Scenario) -> None:
    from gpusched_env.experiments.tuning.search import tune

    for name, message in (
        ("orion(bound=0.5)", "name the scheduler alone"),
        ("sjf-clairvoyant", "told the truth"),
        ("orionn", "orion"),
    ):
        with pytest.raises(InputError, match=message):
            tune(scenario, [name], 2, workers=1)
    with refused(InputError, "workload_sets"):
        tune("Toy", ["orion"], 2, workers=1)


def test_rules_for_child_launches_are_tuned_on_random_applications() -> None:
    from gpusched_env.experiments.tuning.search import tune

    found = tune("DynamicParallelism", ["flat", "spawn"], 3, 2, workers=1)
    assert found.variants == ["random"]
    assert [len(found.trials[name]) for name in ("flat", "spawn")] == [1, 3]
    assert len(found.seeds) == 2
    assert min(found.seeds) >= FIRST_SEED
    assert found.trials["flat"][0].cost == pytest.approx(1.0, rel=1e-12)
    for trial in found.trials["spawn"]:
        costs = []
        for seed in found.seeds:
            problem = launch_problem(random_benchmark(seed))
            device = CompiledWarpDevice()
            costs.append(run_application(make_launch_scheduler(trial.spec), problem, device).time_ps / flat_ps(problem))
        assert trial.cost == pytest.approx(math.sqrt(costs[0] * costs[1]), rel=1e-12)
    with refused(InputError, "truth"):
        tune("DynamicParallelism", ["offline-search"], 2, workers=1)


MADE_UP = Tuning(
    command="gpusched tune PriorityFill",
    versions={},
    scenario="PriorityFill",
    variants=["PriorityFill-train-0"],
    seeds=[FIRST_SEED],
    budget=2,
    seed=0,
    trials={
        "exclusive": [Trial(spec="exclusive", cost=30.0)],
        "orion": [
            Trial(spec="orion", cost=40.0),
            Trial(spec="orion(sm_threshold=inf)", drawn={"sm_threshold": "inf"}, cost=20.0),
        ],
        "wspt": [Trial(spec="wspt", cost=25.0), Trial(spec="wspt(depth=4)", drawn={"depth": 4}, cost=25.0)],
    },
)


def test_tuned_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    (tmp_path / "PriorityFill.json").write_bytes(msgspec.json.encode(MADE_UP))
    scenario = load_scenario("PriorityFill")
    held_out = scenario_variants(scenario, "held_out")[0]
    assert family(held_out.name) == "PriorityFill"
    assert tuned_spec("tuned:orion", held_out.name) == "orion(sm_threshold=inf)"
    assert tuned_spec("tuned:wspt", "PriorityFill") == "wspt", "equal costs: the defaults"
    found = tuning_for("PriorityFill")
    assert found is not None
    assert (found.changed, found.chosen) == (["orion"], "tuned:orion")
    assert expanded(["fifo", "tuned", "tuned:orion"], scenario) == ["fifo", "tuned:orion", "tuned:orion"]
    assert all_schedulers(scenario)[-2:] == default_schedulers(scenario)[-2:] == ["tuned:orion", "learned"]
    assert len(default_schedulers(scenario)) == len(USUAL) + 2
    assert describe_scheduler("tuned:orion").endswith("With tuned options.")
    problem = build_problem(load_scenario("PriorityFill", horizon_us=20_000.0))
    costs = {name: play(name, problem, 0).metrics.cost for name in ("orion", "tuned:orion", "orion(sm_threshold=inf)")}
    assert costs["tuned:orion"] == costs["orion(sm_threshold=inf)"] != costs["orion"]
    with refused(InputError, "scenario's"):
        new_scheduler("tuned:orion")
    with refused(InputError, "PriorityFill", "Toy"):
        new_scheduler("tuned:orion", load_scenario("Toy"))
    with refused(InputError, "PriorityFill", "tuned"):
        new_scheduler("tuned:fifo", scenario)


def test_table_shows_default_and_tuned() -> None:
    table = tuning_table(MADE_UP)
    assert [list(map(str, row)) for row in table.rows] == [
        ["orion", "40", "20", "-50.0%", "sm_threshold=inf"],
        ["wspt", "25", "25", "+0.0%", "defaults"],
        ["exclusive", "30", "–", "–", "nothing to tune"],
    ]


OWN = """
from gpusched_env.baselines.priority_streams import PriorityStreams
from gpusched_env.baselines.ranges import Range

class Mine(PriorityStreams):
    ranges = {"depth": Range(1, 8)}

    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.depth = depth
"""


def test_an_own_scheduler_is_tuned_like_the_others(scenario: Scenario, tmp_path: Path) -> None:
    from gpusched_env.experiments.tuning.search import tune

    file = tmp_path / "own.py"
    file.write_text(OWN)
    (trials,) = tune(scenario, [f"{file}:Mine"], 3, workers=1).trials.values()
    assert [trial.drawn.keys() for trial in trials] == [{"depth"}] * 3
    assert trials[0].drawn == {"depth": 2}
    assert trials[1].spec == f"{file}:Mine(depth={trials[1].drawn['depth']})"


def test_command_writes_a_file(tmp_path: Path) -> None:
    file = tmp_path / "Short.yaml"
    text = Path("gpusched_env/scenarios/PriorityFill.yaml").read_text()
    file.write_text(text.replace("name: PriorityFill", "name: Short").replace("horizon_us: 500000", "horizon_us: 5000"))
    path = tmp_path / "Short.json"
    command = [
        "tune",
        str(file),
        "--schedulers",
        "preemptive-priority",
        "--trials",
        "2",
        "--workers",
        "1",
        "--json",
        str(path),
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert [len(trials) for trials in msgspec.json.decode(path.read_bytes(), type=Tuning).trials.values()] == [2]
    assert "preemptive-priority" in result.stdout
