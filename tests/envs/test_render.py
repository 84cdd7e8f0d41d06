"""Rendering: text, pictures, and the window's stand-in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo
from numpy.typing import NDArray
from PIL import Image

from gpusched_env.display.palette import rgb, tenant
from gpusched_env.display.picture import LEFT, RIGHT
from gpusched_env.display.words import time_text
from gpusched_env.envs import render
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.episodes.charts import kernel_name, scene, window_us
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.play import run_episode
from tests.refusals import refused

BEFORE_THE_END = [1, 2, 2, 0, 0]
"""Toy at 110 µs: urgent_wide has just taken all four SMs, batch_long waits."""


def toy(render_mode: str | None, actions: list[int] = BEFORE_THE_END) -> GpuSchedulingEnv:
    env = GpuSchedulingEnv("Toy", render_mode=render_mode)
    env.reset(seed=0)
    for action in actions:
        env.step(action)
    return env


def test_text_is_a_table_of_what_waits_and_runs() -> None:
    assert toy("ansi").render() == (
        "Toy on toy-4sm   110.0 µs of 2.000 ms\n"
        "SMs [########################] 4/4 busy   occupancy 100%   DRAM 0%\n"
        "last command: launch urgent_wide of urgent\n"
        "\n"
        "tenant  prio  waiting  running  done  rejected  late  pending  launched  slowdown  next kernel\n"
        "batch      1        0        1     0         0     0        1         0         -  batch_long\n"
        "urgent     0        0        1     0         0     0        0         1         -  -\n"
        "\n"
        "id  tenant  launched kernel  stream  us run/alone  blocks on+waiting/all\n"
        " 3  urgent  urgent_wide           0     0.0/100.0                  4+0/4\n"
    )


def test_text_without_running_kernels() -> None:
    assert toy("ansi", []).render().endswith("no kernel is launched\n")


def test_picture_shows_streams_and_sms() -> None:
    env = toy("rgb_array", [*BEFORE_THE_END, 1])
    image = env.render()
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    # Rows of the SM panel, found by the colours of the tenants at 50 µs, when two SMs each are theirs.
    x = LEFT + round(50 * (image.shape[1] - LEFT - RIGHT) / window_us(env.problem))
    column = image[-140:, x]
    for row in (0, 1):
        assert (column == rgb(tenant(row).colour)).all(axis=1).sum() >= 20, "two SM rows in the tenant's full colour"
    assert (env.render() == image).all(), "drawing changes nothing"
    assert image is not env.render()


def coloured(image: NDArray[np.uint8]) -> int:
    """Pixels in the colour of a tenant."""
    return sum(int((image == rgb(tenant(row).colour)).all(axis=2).sum()) for row in range(8))


ONE_JOB = {"name": "a", "workload": "resnet50_infer_b1", "arrivals": {"kind": "periodic", "period_us": 60_000.0}}


@pytest.mark.parametrize(
    "fields",
    [{"horizon_us": 8_000.0}, {"horizon_us": 50_000.0, "tenants": [ONE_JOB]}],
    ids=["work goes on", "idle end"],
)
def test_the_last_picture_shows_the_last_moment_of_work(fields: dict[str, Any]) -> None:
    env = GpuSchedulingEnv("InferenceBesideTraining", render_mode="rgb_array", **fields)
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
        over = terminated or truncated
    past = env.render()[-160:, LEFT:]
    blank = (past == past[0, 0]).all(axis=2)
    assert coloured(past) + (~blank).sum() > 0.2 * blank.size


def test_counts_of_jobs_are_those_of_the_episode() -> None:
    episode = run_episode("ServingPoisson", "moore", seed=1, record="kernels", horizon_us=30_000.0, load=3.0)
    assert episode.last is not None
    shown = scene(episode.problem, episode.timeline, episode.last, "")
    for row, figures in enumerate(episode.metrics.tenants):
        counts = shown.counts(row, episode.end_us)
        assert (counts.done, counts.rejected) == (figures.completed, figures.rejected)
        assert counts.waiting + counts.running == figures.unfinished
        # A rejected job counts as one that missed its objective.
        assert counts.late + counts.rejected == episode.costs.slo_misses[row]
    assert sum(shown.counts(row, episode.end_us).rejected for row in range(6)) > 0
    assert shown.counts(0, 0.0) == (0, 0, 0, 0, 0)


def test_a_film_has_many_different_pictures_and_is_small(tmp_path: Path) -> None:
    env = toy("rgb_array", [*BEFORE_THE_END, 1])
    path = env.episode().animate(tmp_path / "toy.gif", frames=30)
    with Image.open(path) as film:
        pictures = []
        for frame in range(film.n_frames):
            film.seek(frame)
            pictures.append(film.convert("RGB").tobytes())
        assert film.size == env.render().shape[1::-1]
    assert len(set(pictures)) >= 25
    assert path.stat().st_size < 200_000


def test_what_no_film_can_be_made_of_is_said(tmp_path: Path) -> None:
    episode = toy("rgb_array", [*BEFORE_THE_END, 1]).episode()
    with refused(InputError, ".mp4"):
        episode.animate(tmp_path / "toy.png")
    with refused(InputError, "1000 us", "ran"):
        episode.animate(tmp_path / "toy.gif", window_us=(1000.0, 2000.0))
    with refused(InputError, "least 2"):
        episode.animate(tmp_path / "toy.gif", frames=1)
    with refused(InputError, "record='blocks'"):
        toy(None).episode().animate(tmp_path / "toy.gif")


def test_videos_are_recorded_with_moviepy(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", exc_type=ImportError)
    env = RecordVideo(GpuSchedulingEnv("Toy", render_mode="rgb_array"), str(tmp_path / "videos"))
    env.reset(seed=0)
    for action in [*BEFORE_THE_END, 1]:
        env.step(action)
    env.unwrapped.episode().animate(tmp_path / "film.mp4", frames=5)
    env.close()
    for video in ("film.mp4", "videos/rl-video-episode-0.mp4"):
        assert (tmp_path / video).stat().st_size > 1_000


def test_picture_of_recorded_workloads_at_every_stage() -> None:
    env = GpuSchedulingEnv("ThreeTenants", render_mode="rgb_array", commands=["launch", "preempt", "partition"])
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    shapes = {env.render().shape}
    for step in range(300):
        env.step(rng.choice(np.flatnonzero(env.action_masks())))
        if step % 60 == 0:
            shapes.add(env.render().shape)
    assert len(shapes) == 1, "frames of a video have one size"


def test_human_without_a_display_prints_the_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    env = toy("human", [1])
    printed = capsys.readouterr().out
    assert printed.count("Toy on toy-4sm") == 2, "after the reset and after the step"
    env.close()
    env.close()


def test_human_with_a_display_shows_every_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "show", lambda figure: None)
    monkeypatch.setattr(render, "open_screen", lambda: render._Window(pyplot))
    env = toy("human", [])
    (axes,) = pyplot.figure("gpusched_env").axes
    before = axes.images[0].get_array()
    for action in BEFORE_THE_END:
        env.step(action)
    assert (axes.images[0].get_array() != before).any()
    env.close()
    assert not pyplot.fignum_exists("gpusched_env")


def test_without_a_mode_render_says_what_to_do() -> None:
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert toy(None, []).render() is None


@pytest.mark.parametrize(
    ("us", "expected"), [(0.0, "0.0 µs"), (999.94, "999.9 µs"), (1000.0, "1.000 ms"), (float("inf"), "no limit")]
)
def test_times(us: float, expected: str) -> None:
    assert time_text(us) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("urgent_wide", "urgent_wide"),
        ("void at::native::softmax_warp_forward<float, 7>(float*, int)", "softmax_warp_forward"),
        ("void cutlass::Kernel<cutlass_tensorop_s16816gemm_f16>(Params)", "cutlass_tensorop_s16816gemm_f16"),
        (
            "_ZN17cutlass__5x_cudnn6KernelIN66cutlass_tensorop_f16_s16816fprop_fewchannels_f16_64x128_32x6_nhwcEEEvv",
            "cut",
        ),
        ("a" * 50, "a" * 31 + "…"),
    ],
)
def test_kernel_names_lose_what_does_not_tell_them_apart(name: str, expected: str) -> None:
    env = GpuSchedulingEnv("Toy")
    profile = env.problem.kernels[0]
    renamed = replace(profile, kernel=msgspec.structs.replace(profile.kernel, name=name))
    problem = replace(env.problem, kernels=(renamed,))
    shown = kernel_name(problem, 0, 32)
    assert len(shown) <= 32
    assert shown.startswith(expected) if name.startswith("_Z") else shown == expected
