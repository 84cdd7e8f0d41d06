"""Pairs of networks without a GPU: what counts of the replays of two networks beside each other."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.record import networks
from gpusched_env.experiments.record.graphs import (
    QUEUED_REPLAYS,
    REPLAYS,
    WARM_UP,
    Span,
    alone,
    beside,
    model_pairs,
    replays_within_foreground,
)
from gpusched_env.experiments.record.networks import BACKGROUNDS, FOREGROUNDS, LEFT_OUT, SEEN, draw
from gpusched_env.experiments.record.run import RecordingPlan, record
from gpusched_env.experiments.record.torch_gpu import TorchGpu, holding
from gpusched_env.experiments.validate.recordings import read_recordings
from gpusched_env.experiments.validate.scoring import networks_elsewhere
from tests.experiments.record.fake_gpu import FakeGpu
from tests.refusals import refused


class Clock:
    """Time passes a little whenever somebody asks for it."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.most_queued: dict[str, int] = {}

    def now(self) -> float:
        self.ms += 0.01
        return self.ms


class Replay:
    def __init__(self, clock: Clock, span: Span) -> None:
        self.clock, self.when = clock, span

    def begun(self) -> bool:
        return self.clock.now() >= self.when.start_ms

    def done(self) -> bool:
        return self.clock.now() >= self.when.end_ms

    def span(self) -> Span:
        assert self.done()
        return self.when


class Network:
    """Takes a constant time, longer beside others: while something else is queued."""

    def __init__(self, clock: Clock, took_ms: float) -> None:
        self.clock, self.took_ms = clock, took_ms
        self.free_ms = 0.0
        self.spans: list[Span] = []

    def replay(self) -> Replay:
        start = max(self.clock.now(), self.free_ms)
        self.free_ms = start + self.took_ms
        self.spans.append(Span(start, self.free_ms))
        return Replay(self.clock, self.spans[-1])


class Graphs:
    def __init__(self, times_ms: dict[str, float]) -> None:
        self.clock = Clock()
        self.times_ms = times_ms
        self.asked: list[tuple[str, int]] = []
        self.head = {"gpu": "fake", "torch": "0"}
        self.board = None

    def graph(self, name: str, priority: int = 0) -> Network:
        self.asked.append((name, priority))
        return Network(self.clock, self.times_ms[name])

    def restart(self) -> None:
        self.clock.ms = 0.0

    def trace(self, name: str, path: Path) -> None:
        path.write_text(name)

    def trace_memory(self, name: str, path: Path, execution: Path, *, held: bool) -> None:
        path.write_text(name)
        execution.write_text(f"held {held}")


@pytest.mark.parametrize(("front_ms", "behind_ms"), [(5.0, 1.0), (1.0, 5.0), (0.2, 19.0)])
def test_both_run_beside_the_other_all_the_time(front_ms: float, behind_ms: float) -> None:
    clock = Clock()
    front, behind = Network(clock, front_ms), Network(clock, behind_ms)
    found = beside(front, behind, replays=30, least_behind=10)
    start, end = front.spans[WARM_UP].start_ms, front.spans[-1].end_ms
    assert behind.spans[0].start_ms < start
    assert behind.spans[-1].end_ms > end
    assert len(found.front_us) >= 30
    assert len(found.behind_us) >= 10
    within = [span for span in behind.spans if span.start_ms >= start and span.end_ms <= end]
    assert len(found.behind_us) == len(within)
    assert found.busy == pytest.approx(1.0, abs=0.02)
    # The background's own pace: it never waits for the foreground.
    gaps = [later.start_ms - before.end_ms for before, later in zip(behind.spans, behind.spans[1:], strict=False)]
    assert max(gaps) == 0.0
    assert len([span for span in behind.spans if span.start_ms > end]) <= QUEUED_REPLAYS


def test_replays_outside_the_foreground_s_time_do_not_count() -> None:
    behinds = [Span(0, 2), Span(2, 4), Span(4, 6), Span(7, 9), Span(9, 11)]
    found = replays_within_foreground([Span(3, 5), Span(6, 10)], behinds)
    assert found.front_us == [2000, 4000]
    assert found.behind_us == [2000, 2000]
    assert found.busy == pytest.approx(6 / 7)


def test_a_network_alone_is_replayed_one_at_a_time() -> None:
    network = Network(Clock(), 1.5)
    took_us = alone(network)
    assert len(took_us) == REPLAYS
    assert took_us == pytest.approx([1500.0] * REPLAYS)


def test_rows_are_read_by_the_validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "import_module", lambda name: None)
    graphs = Graphs({"alexnet_infer_b1": 0.2, "vgg16_infer_b8": 1.7, "resnet50_infer_b32": 3.9})
    record(RecordingPlan(folder=tmp_path, sets=("kernels",), quick=True), lambda *of: None, gpu=FakeGpu)
    plan = RecordingPlan(folder=tmp_path, sets=("model_pairs",), networks=tuple(graphs.times_ms))
    told: list[tuple[Path, int]] = []
    record(plan, lambda *of: told.append(of), networks=lambda: graphs)
    assert told == [(tmp_path / "model_pairs.jsonl", number) for number in range(1, 8)]
    pairs = read_recordings(tmp_path).model_pairs
    assert pairs is not None
    assert [(pair.mode, pair.fg, pair.bg) for pair in pairs] == [
        (mode, "alexnet_infer_b1", behind)
        for behind in ("resnet50_infer_b32", "vgg16_infer_b8")
        for mode in ("streams", "priority")
    ]
    assert [pair.recorded for pair in pairs] == [pytest.approx((1.0, 1.0), rel=1e-3)] * 4
    assert ("alexnet_infer_b1", -5) in graphs.asked
    assert {priority for name, priority in graphs.asked if name != "alexnet_infer_b1"} == {0}


def test_what_is_there_is_not_recorded_again() -> None:
    there: Sequence[dict[str, Any]] = [
        {"what": "solo", "model": "alexnet_infer_b1", "p50_us": 100.0},
        {"what": "pair", "mode": "streams", "fg": "alexnet_infer_b1", "bg": "vgg16_infer_b8"},
    ]
    graphs = Graphs({"alexnet_infer_b1": 0.2, "vgg16_infer_b8": 1.7})
    solo, pair = model_pairs(graphs, list(graphs.times_ms), there)
    assert solo["model"] == "vgg16_infer_b8"
    assert (pair["mode"], pair["fg_solo_us"], pair["bg_solo_us"]) == ("priority", 100.0, solo["p50_us"])


def test_traces_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "import_module", lambda name: None)
    graphs = Graphs({"alexnet_infer_b1": 0.2, "vgg16_infer_b8": 1.7})
    plan = RecordingPlan(folder=tmp_path, sets=("traces",), networks=tuple(graphs.times_ms))
    made = tmp_path / "traces" / "alexnet_infer_b1.kineto.json.gz"
    record(plan, lambda *of: None, networks=lambda: graphs)
    assert made.read_text() == "alexnet_infer_b1"
    made.write_text("earlier")
    with refused(InputError, "--resume", "keep"):
        record(plan, lambda *of: None, networks=lambda: graphs)
    record(dataclasses.replace(plan, resume=True), lambda *of: None, networks=lambda: graphs)
    assert made.read_text() == "earlier"


def test_networks_that_are_drawn_are_in_no_other_recording() -> None:
    models = [*SEEN, *LEFT_OUT, *(f"net{number}" for number in range(40))]
    names = draw(7, models)
    assert names == draw(7, reversed(models)) != draw(8, models)
    taken = [name.partition("_infer_b")[0] for name in names]
    assert len(set(taken)) == FOREGROUNDS + BACKGROUNDS
    assert all(name.startswith("net") for name in taken)
    assert len(networks.pairs(names)) == FOREGROUNDS * BACKGROUNDS * 2
    with refused(InputError, "--drawn", "16 networks", "2 are"):
        draw(7, ["net2", "net1", "alexnet"])


def test_the_drawn_networks_of_the_recording_are_new() -> None:
    with resources.as_file(resources.files("gpusched_env.data") / "measurements/h200/drawn_networks") as folder:
        pairs = read_recordings(folder).model_pairs
        elsewhere = networks_elsewhere(folder)
    assert pairs is not None
    assert len(pairs) == FOREGROUNDS * BACKGROUNDS * 2
    assert not {name for pair in pairs for name in (pair.fg, pair.bg)} & elsewhere


def test_any_network_of_torchvision_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[str, dict[str, Any]]] = []
    segmentation = SimpleNamespace()
    models = SimpleNamespace(
        segmentation=segmentation,
        list_models=lambda module: ["fcn_resnet50"] if module is segmentation else ["resnet34"],
        get_model=lambda name, **given: built.append((name, given)),
    )
    monkeypatch.setattr(networks, "import_module", lambda name: SimpleNamespace(models=models))
    monkeypatch.setattr(networks, "_inference", lambda *_: None)
    monkeypatch.setattr(networks, "_images", lambda *_: None)
    for name in ("resnet34_infer_b4", "fcn_resnet50_infer_b1"):
        assert networks.network(name).packages == ("torchvision",)
        networks.network(name).build()
    # Nothing is downloaded, neither for the whole network nor for the part of it that classifies.
    assert built == [("resnet34", {"weights": None}), ("fcn_resnet50", {"weights": None, "weights_backbone": None})]
    with refused(InputError, "'resnet35_infer_b4'", "network"):
        networks.network("resnet35_infer_b4")


def test_a_loop_of_one_operator_is_a_background(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(networks, "operator_step", made.append)
    networks.network("relu_op").build()
    assert made == ["relu"]
    assert networks.pairs(["resnet18_infer_b1", "relu_op"]) == [
        (mode, "resnet18_infer_b1", "relu_op") for mode in ("streams", "priority")
    ]
    with refused(InputError, "'gelu_op'", "network"):
        networks.network("gelu_op")


def test_what_gathers_and_scatters_is_a_background(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(networks, "SCATTERING", {"sort_16m": lambda: made.append("sort_16m")})
    networks.network("sort_16m_scatter").build()
    assert made == ["sort_16m"]
    assert networks.pairs(["resnet18_infer_b1", "sort_16m_scatter"]) == [
        (mode, "resnet18_infer_b1", "sort_16m_scatter") for mode in ("streams", "priority")
    ]
    with refused(InputError, "'sort_17m_scatter'", "network"):
        networks.network("sort_17m_scatter")


def test_programs_are_recorded_with_and_without_memory_that_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "import_module", lambda name: None)
    plan = RecordingPlan(folder=tmp_path, sets=("memory",), networks=("bodies6_step_b2048",))
    record(plan, lambda *of: None, networks=lambda: Graphs({}))
    assert {path.name: path.read_text() for path in (tmp_path / "memory").iterdir()} == {
        "bodies6_step_b2048.kineto.json.gz": "bodies6_step_b2048",
        "bodies6_step_b2048.execution.json": "held False",
        "bodies6_step_b2048-held.kineto.json.gz": "bodies6_step_b2048",
        "bodies6_step_b2048-held.execution.json": "held True",
    }


def test_memory_that_is_held_is_not_used_again() -> None:
    torch = pytest.importorskip("torch")
    places: list[int] = []

    def step() -> None:
        places.extend((torch.zeros(1000) + 1.0).data_ptr() for _ in range(8))

    holding(step)()
    assert len(set(places)) == 8


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with refused(InputError, "nasnetalarge_infer_b1", "--networks"):
        networks.chosen(["lstm_infer_b16_t50", "nasnetalarge_infer_b1"])
    with refused(InputError, "PyTorch", "GPU"):
        TorchGpu()
    monkeypatch.setitem(sys.modules, "torch", None)
    with refused(InputError, "PyTorch", "networks"):
        TorchGpu()
