"""Schedulers on a GPU beside what was predicted: on a stand-in for the GPU, whose times are nobody's."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import GpuError, InputError
from gpusched_env.experiments.cli import main
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.experiments.live import page
from gpusched_env.experiments.live.page import live_svg
from gpusched_env.experiments.live.result import Live, LiveEpisode, LiveFigures, encode_live, errors_of, read_live
from gpusched_env.experiments.live.run import TimedDecisions, run_live
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import View
from tests.devices.cuda import fake_cupy
from tests.refusals import refused

SETTINGS = ["stretch=5", "tenants.batch.jobs=1", "horizon_us=60e6"]
"""An hour's share of patience for a busy machine: the horizon is in real time, too."""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.fake_cupy())
    monkeypatch.setattr(fake_cupy.Stream, "fault", None)
    monkeypatch.setattr(fake_cupy.Stream, "hangs", False)
    yield
    fake_cupy.quieten()


def test_every_scheduler_runs_on_the_gpu_and_in_simulation(gpu: None, tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    names = ["pass-through", "wspt", "tally", "sjf-clairvoyant"]
    live = run_live(["Toy"], names, 2, path, settings=SETTINGS, workers=1, command="gpusched lab validate --live Toy")
    assert (live.product, live.gpu) == ("NVIDIA H100 80GB HBM3", "h100-sxm")
    assert [(e.scheduler, e.seed) for e in live.episodes] == [
        (name, seed) for seed in (0, 1) for name in ("pass-through", "wspt")
    ]
    for episode in live.episodes:
        assert episode.real.done
        assert episode.simulated.done
        assert episode.decisions > 0
        assert episode.decision_p99_us >= 0.5 * episode.decision_us > 0.0
    assert "can only be drained" in live.left_out["Toy"]["tally"]
    assert "before they are known" in live.left_out["Toy"]["sjf-clairvoyant"]
    assert live.fits["Toy"].kernels == len(build_problem(load_scenario("Toy")).kernels)
    assert live.fits["Toy"].time == pytest.approx(1.0, abs=0.05)
    assert live.made.physics.keys() == {"compiled", "cuda"}
    assert live.made.schedulers["Toy"].keys() - {"alone"} == {"pass-through", "wspt"}
    assert live.made.data["Toy"].keys() == {", ".join(["Toy", *SETTINGS])}
    assert read_live(path) == live
    written = page.markdown([live], "picture.svg", "tables.csv")
    assert "](picture.svg)" in written
    assert "](tables.csv)" in written
    assert live_svg([live, live]).count(b'<g id="axes_') == 2
    assert "gpusched lab validate --live Toy" in written
    rows = list(csv.DictReader(io.StringIO(page.all_tables([live]))))
    cost = float(np.mean([e.real.cost for e in live.episodes if e.scheduler == "wspt"]))
    assert [float(row["cost_measured"]) for row in rows if row["scheduler"] == "wspt"] == [
        pytest.approx(cost, rel=1e-3)
    ]
    left_out = [f"Toy: {row['left_out']}" for row in rows if row["scheduler"] == "tally"]
    assert left_out == [live.left_out["Toy"]["tally"]]


def test_a_title_says_what_was_set_for_the_whole_scenario() -> None:
    settings = ["stretch=5", "preemption=[drain]", "tenants.a.jobs=2", "tenants.a.kernels=library"]
    live = Live(command="", versions={}, product="", gpu="", seeds=[0], settings=settings)
    assert live.title("S") == "S, stretch=5, preemption=[drain], library kernels"
    assert msgspec.structs.replace(live, settings=[]).title("S") == "S"


def test_what_was_measured_before_the_gpu_failed_is_kept(
    gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(name: str, scenario: object) -> object:
        if name == "fifo":
            monkeypatch.setattr(fake_cupy.Stream, "fault", "unspecified launch failure")
        return new_scheduler(name)

    path = tmp_path / "live.json"
    monkeypatch.setattr("gpusched_env.experiments.lib.play.new_scheduler", failing)
    with refused(GpuError, "unspecified"):
        run_live(["Toy"], ["wspt", "fifo", "sjf"], 1, path, settings=SETTINGS, workers=1)
    kept = read_live(path)
    assert [episode.scheduler for episode in kept.episodes] == ["wspt"]
    assert "unspecified launch failure" in kept.left_out["Toy"]["fifo"]


class Careless(PassThrough):
    """Fails in the middle of an episode."""

    def decide(self, view: View) -> Command:
        if view.time_us > 0.0:
            raise ZeroDivisionError("of a careless scheduler")
        return super().decide(view)


def test_a_scheduler_that_fails_in_an_episode_is_left_out_and_the_others_go_on(gpu: None) -> None:
    names = ["tests/experiments/test_live.py:Careless", "wspt"]
    live = run_live(["Toy"], names, 1, settings=SETTINGS, workers=1)
    assert [episode.scheduler for episode in live.episodes] == ["wspt"]
    assert "ZeroDivisionError: of a careless scheduler" in live.left_out["Toy"][names[0]]


class Compiles(PassThrough):
    """Takes half a second for the first decision of a process."""

    compiled = False

    def decide(self, view: View) -> Command:
        if not Compiles.compiled:
            time.sleep(0.5)
            Compiles.compiled = True
        return super().decide(view)


def test_what_a_scheduler_compiles_takes_no_time_on_the_gpu(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, Compiles.__module__, sys.modules[__name__])
    live = run_live(["Toy"], [f"{__name__}:Compiles"], 1, settings=SETTINGS, workers=1)
    assert live.left_out == {"Toy": {}}
    assert live.episodes[0].decision_us * live.episodes[0].decisions < 0.5e6


def test_without_cupy_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(
        sys, "argv", ["gpusched", "lab", "validate", "--live", "Toy", "--json", str(tmp_path / "live.json")]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "a real GPU needs cupy: pip install" in capsys.readouterr().err
    assert not (tmp_path / "live.json").exists()


def played(device: CompiledDevice, decision_us: float = 0.0) -> Episode:
    problem = build_problem(load_scenario("Toy", decision_us=decision_us))
    return run_episode(new_scheduler("wspt"), problem, device, 1, record="kernels")


def test_decisions_that_all_take_as_long_are_those_of_a_scenario() -> None:
    constant, timed = played(CompiledDevice(), 7.5), played(TimedDecisions([7.5]))
    assert timed.timeline.kernels.array.tolist() == constant.timeline.kernels.array.tolist()
    assert timed.end_us == constant.end_us


def test_each_decision_takes_its_own_time() -> None:
    """Toy's first kernels are launched at time 0, one decision after the other."""
    started = played(TimedDecisions([3.0, 10.0, 1.0])).timeline.decisions.dict()["time_us"][:3]
    assert started.tolist() == [0.0, 3.0, 13.0]


def figures(cost: float, turnaround: float | None) -> LiveFigures:
    return LiveFigures(
        turnaround_us=(turnaround, 10.0), slowdown=(turnaround, 1.0), throughput_per_s=(1.0, 1.0), urgent_p99=None,
        best_effort=None, makespan_us=1.0, cost=cost, done=True,
    )  # fmt: skip


def test_errors_and_order() -> None:
    episode = LiveEpisode("S", "a", 0, 5, 10.0, 20.0, figures(1.0, 100.0), figures(1.5, 110.0))
    other = replace_of(episode, "b", figures(2.0, 50.0), figures(1.4, None))
    third = replace_of(episode, "c", figures(3.0, 50.0), figures(2.0, 40.0))
    live = Live(command="", versions={}, product="", gpu="", seeds=[0], episodes=[episode, other, third])
    assert errors_of(live.episodes, lambda f: f.turnaround_us).tolist() == pytest.approx([0.1, 0.0, 0.0, 0.2, 0.0])
    # Of three pairs, one is in the wrong order.
    assert live.tau("S", lambda f: f.cost) == pytest.approx(1 / 3)
    assert live.in_order("S", lambda f: f.cost) == (2, 3)
    # Where a scheduler's figure is not defined, it is left out; two have no order to speak of.
    assert np.isnan(live.tau("S", lambda f: f.turnaround_us[0]))
    assert encode_live(live).count(b'"scheduler"') == 3


def test_jobs_that_take_no_time_are_refused() -> None:
    row = LiveEpisode("S", "a", 0, 5, 10.0, 20.0, figures(1.0, 0.0), figures(1.5, 110.0))
    live = Live(command="", versions={}, product="", gpu="", seeds=[0], episodes=[row])
    with pytest.raises(msgspec.ValidationError, match=r"> 0.0.*turnaround_us\[0\]"):
        msgspec.json.decode(encode_live(live), type=Live)


@pytest.mark.parametrize("tenants", [{}, {"S": []}, {"S": ["t", "u"], "T": ["v"]}])
def test_a_file_with_nothing_to_see_is_refused(tenants: dict[str, list[str]], tmp_path: Path) -> None:
    row = LiveEpisode("S", "a", 0, 5, 10.0, 20.0, figures(1.0, 1.0), figures(1.5, 1.0))
    rows = [row] if tenants.get("S") else []
    live = Live(command="", versions={}, product="", gpu="", seeds=[0], tenants=tenants, episodes=rows)
    (tmp_path / "live.json").write_bytes(encode_live(live))
    with refused(InputError, "live.json", "tenants"):
        read_live(tmp_path / "live.json")


def test_the_trained_agent_stands_beside_the_best_of_the_others() -> None:
    agent = LiveEpisode("S", "learned(interval_us=9)", 0, 5, 10.0, 20.0, figures(3.0, 1.0), figures(2.0, 1.0))
    slower = replace_of(agent, "learned", figures(4.0, 1.0), figures(1.0, 1.0))
    published = [
        replace_of(agent, name, figures(cost, 1.0), figures(4.0, 1.0)) for name, cost in (("orion", 6.0), ("reef", 7.0))
    ]
    rule = replace_of(agent, "edf", figures(2.0, 1.0), figures(0.0, 1.0))
    rows = [agent, slower, *published, rule]
    live = Live(command="", versions={}, product="", gpu="h", seeds=[0], episodes=rows, tenants={"S": ["t", "u"]})
    best = ["S", "h", "learned(interval_us=9) 3 / 2", "orion 6 / 4", "-50 % / -50 %", "edf 2 / 0", "+50 % / –"]
    assert page.agents([live]).rows == [[*best, "–"]]
    for cost, worth in ((2.5, "cost more than they gain (pass-through 2.5)"), (3.5, "gain more than they cost")):
        none = replace_of(agent, "pass-through", figures(cost, 1.0), figures(cost, 1.0))
        live.episodes = [*rows, none]
        assert page.agents([live]).rows == [[*best, worth]]
    live.episodes = [slower, rule]
    assert page.agents([live]).rows == []


def test_what_compiled_launches_take() -> None:
    by_python = LiveEpisode("S", "orion", 0, 5, 70.0, 90.0, figures(3.0, 1.0), figures(2.0, 1.0))
    driven = [
        msgspec.structs.replace(by_python, scheduler=name, launch_us=us, launch_p99_us=3 * us, interval_us=100 * us)
        for name, us in (("learned", 4.0), ("learned", 6.0), ("interval:plan", 5.0), ("interval:plan", 7.0))
    ]
    live = Live(
        command="", versions={}, product="", gpu="h", seeds=[0], episodes=[by_python], tenants={"S": ["t", "u"]}
    )
    assert page.compiled_launches([live]).rows == []
    live.episodes += driven
    assert page.compiled_launches([live]).rows == [["S", "h", "2", "5.5 / 16", "500 (learned)", "600 (interval:plan)"]]
    # A decision that did not come to stand before the end has no time.
    live.episodes[1] = msgspec.structs.replace(live.episodes[1], interval_us=None)
    assert page.compiled_launches([live]).rows[0][4:] == ["600 (interval:plan)", "600 (learned)"]
    live.episodes = [msgspec.structs.replace(episode, interval_us=None) for episode in live.episodes]
    assert page.compiled_launches([live]).rows[0][4:] == ["–", "–"]


def replace_of(episode: LiveEpisode, scheduler: str, real: LiveFigures, simulated: LiveFigures) -> LiveEpisode:
    return msgspec.structs.replace(episode, scheduler=scheduler, real=real, simulated=simulated)
