"""What TensorBoard shows, read by TensorBoard itself; and looked at in a browser."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from gpusched_env.agents.training import Trained, train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.display.palette import TENANTS, rgb
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.scenarios.scenario import load_scenario

if TYPE_CHECKING:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from gpusched_env.agents.training.progress import TrainingProgress

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
BASELINES = {"fifo": 1.83, "reef": 1.04}


def config() -> TrainingConfig:
    return config_of(
        {
            "scenario": load_scenario("Toy"),
            "timesteps": 512,
            "envs": 8,
            "n_steps": 16,
            "batch_size": 64,
            "validation_seeds": 1,
            "validate_every": 256,
            "checkpoint_every": 128,
        }
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    out = tmp_path_factory.mktemp("training") / "out"
    return train(config(), out, baselines=BASELINES), out


@pytest.fixture(scope="module")
def events(trained: tuple[Trained, Path]) -> EventAccumulator:
    return read(trained[1])


def read(out: Path) -> EventAccumulator:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(out / "tensorboard"))
    found.Reload()
    return found


def series(events: EventAccumulator, tag: str) -> dict[int, float]:
    points = events.Scalars(tag)
    assert len({point.step for point in points}) == len(points), f"{tag} has a step twice"
    return {point.step: point.value for point in points}


def test_validations_are_the_learning_curve(trained: tuple[Trained, Path], events: EventAccumulator) -> None:
    curve = trained[0].curve
    assert [point.timesteps for point in curve] == [0, 256, 512]
    costs = {point.timesteps: point.cost for point in curve}
    assert series(events, "validation/cost") == pytest.approx(costs)
    assert series(events, "validation/metrics/cost") == pytest.approx(costs)
    assert series(events, "validation/reward/turnaround") == pytest.approx({k: -v for k, v in costs.items()})
    best = np.minimum.accumulate([point.cost for point in curve])
    assert list(series(events, "validation/best_cost").values()) == pytest.approx(best)
    gaps = {step: cost / 1.04 - 1.0 for step, cost in costs.items()}
    assert series(events, "validation/gap_to_best_baseline") == pytest.approx(gaps, abs=1e-6)


def test_every_reward_term_and_metric_is_there(events: EventAccumulator) -> None:
    tags = set(events.Tags()["scalars"])
    terms = {f"reward/{term}" for term in ("turnaround", "slowdown", "slo_miss", "energy", "makespan")}
    whole = {f"metrics/{name}" for name in ("utilisation", "dram_utilisation", "stp", "antt", "energy_j", "cost")}
    figures = ("turnaround_p50_us", "turnaround_p95_us", "turnaround_p99_us", "slowdown", "completed")
    tenants = {f"metrics/{tenant}/{figure}" for tenant in ("batch", "urgent") for figure in figures}
    shown = terms | whole | tenants | {"metrics/urgent/slo_attainment"}
    actions = {"actions/illegal", "actions/legal", "actions/wait", "actions/launch", "actions/launch/urgent"}
    assert shown | actions <= tags
    assert {f"validation/{tag}" for tag in shown} <= tags
    assert {"train/value_loss", "train/entropy_loss", "time/fps"} <= tags


def test_training_figures_are_those_of_its_episodes(events: EventAccumulator) -> None:
    for step, cost in series(events, "metrics/cost").items():
        assert 1.04 - 1e-6 <= cost < 20.0
        assert series(events, "reward/turnaround")[step] == pytest.approx(-cost, rel=1e-5)
        mix = [series(events, f"actions/{label}")[step] for label in ("wait", "launch")]
        assert sum(mix) == pytest.approx(1.0)
        tenants = [series(events, f"actions/launch/{tenant}")[step] for tenant in ("batch", "urgent")]
        assert sum(tenants) == pytest.approx(mix[1])
        assert 1.0 <= series(events, "actions/legal")[step] <= 3.0
        assert series(events, "actions/illegal")[step] == 0.0


def test_the_schedule_is_a_picture(events: EventAccumulator, tmp_path: Path) -> None:
    pictures = events.Images("validation/schedule")
    assert [picture.step for picture in pictures] == [0, 256, 512]
    file = tmp_path / "schedule.png"
    file.write_bytes(pictures[-1].encoded_image_string)
    pixels = np.asarray(Image.open(file))
    assert pixels.shape == (pictures[-1].height, pictures[-1].width, 3)
    # Both tenants' colours are in it.
    for colour in map(rgb, TENANTS[:2]):
        assert (pixels == colour).all(axis=2).sum() > 100


def test_hyper_parameters_come_with_results(events: EventAccumulator) -> None:
    from tensorboard.plugins.hparams import plugin_data_pb2

    def content(tag: str) -> Any:
        return plugin_data_pb2.HParamsPluginData.FromString(events.SummaryMetadata(tag).plugin_data.content)

    given = content("_hparams_/session_start_info").session_start_info.hparams
    assert given["algo"].string_value == "maskable-ppo"
    assert given["n_steps"].number_value == 16.0
    assert given["scenario"].string_value == "Toy"
    metrics = {info.name.tag for info in content("_hparams_/experiment").experiment.metric_infos}
    assert metrics == {"validation/cost", "validation/best_cost", "validation/gap_to_best_baseline"}
    # A metric's value is the last one of the scalar of its name.
    assert metrics <= set(events.Tags()["scalars"])


def test_a_resumed_training_shows_nothing_twice(tmp_path: Path, events: EventAccumulator) -> None:
    class Cut(Exception):
        """Stands for a kill."""

    def cut(progress: TrainingProgress) -> None:
        if progress.timesteps > 330:
            raise Cut

    with pytest.raises(Cut):
        train(config(), tmp_path, baselines=BASELINES, watch=cut)
    train(config(), tmp_path, baselines=BASELINES, resume=True)
    resumed = read(tmp_path)
    assert set(resumed.Tags()["scalars"]) == set(events.Tags()["scalars"])
    for tag in events.Tags()["scalars"]:
        expected = series(events, tag)
        assert series(resumed, tag).keys() == expected.keys(), tag
        if not tag.startswith("time/"):
            assert series(resumed, tag) == expected, tag


def test_costs_of_baselines_may_come_while_it_trains(tmp_path: Path, events: EventAccumulator) -> None:
    costs: dict[str, float] = {}

    def watch(progress: TrainingProgress) -> None:
        if progress.timesteps > 128:  # After the policy at the beginning was judged.
            costs.update(BASELINES)

    train(config(), tmp_path, baselines=costs, watch=watch)
    gaps = series(events, "validation/gap_to_best_baseline")
    assert series(read(tmp_path), "validation/gap_to_best_baseline") == {step: gaps[step] for step in (256, 512)}
    for name in ("validation.json", "result.json"):
        assert json.loads((tmp_path / name).read_text())["baselines"] == BASELINES


def test_what_actions_count_as() -> None:
    from gpusched_env.agents.training.learning import action_labels

    layout = ActionLayout(
        slots=3, running_slots=1, stream_priorities=(0, -1), modes=("drain", "save-part"), quarters=(2, 4), lookahead=2
    )
    labels, belongs = action_labels(layout, ("a", "b"))
    assert belongs.shape == (layout.n, len(labels))

    def of(action: int) -> set[str]:
        return {label for label, member in zip(labels, belongs[action], strict=True) if member}

    assert of(0) == {"wait"}
    assert of(1) == of(3) == {"launch", "launch/a", "launch/priority_0"}
    assert of(6) == {"launch", "launch/b", "launch/priority_-1"}
    assert of(9) == {"launch", "launch/priority_0"}, "an empty tenant slot"
    assert of(13) == {"preempt", "preempt/drain"}
    assert of(14) == of(16) == {"preempt", "preempt/save-part"}
    assert of(17) == {"partition", "partition/a", "partition/2_of_4"}


@pytest.mark.slow
def test_a_browser_shows_it(trained: tuple[Trained, Path], tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    board = [sys.executable, "-m", "tensorboard.main", "--logdir", str(trained[1] / "tensorboard")]
    server = subprocess.Popen([*board, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}/"
        while True:
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.5)
        shot = tmp_path / "board.png"
        browser = [
            *(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"),
            *(f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000"),
        ]
        for output in (f"--screenshot={shot}", "--dump-dom"):
            page = subprocess.run(
                [*browser, output, f"{address}#timeseries"], check=True, capture_output=True, text=True
            )
        for shown in ("actions/illegal", "actions/launch/batch", "HParams", "Images"):
            assert shown.lower() in page.stdout.lower()
        pixels = np.asarray(Image.open(shot).convert("RGB")).astype(int)
        assert pixels.shape == (1000, 1400, 3)
        # The colour of the run's curves, below the header.
        assert (pixels[100:] == (66, 80, 102)).all(axis=2).sum() > 200
    finally:
        server.terminate()
        server.wait()
