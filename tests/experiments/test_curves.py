"""Learning curves: what is gathered and refused, the file, and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.results.curves import (
    Curves,
    _comparable,
    curves_svg,
    encode_curves,
    gather,
    limits,
    read_curves,
    spread_labels,
)
from tests.experiments.trainings import training
from tests.refusals import refused

MADE = {"physics": {"training": "a"}}


@pytest.fixture
def curves(tmp_path: Path) -> Curves:
    second = training(tmp_path / "b", [5.0, 1.2, 1.04], seed=1, made=MADE)
    return gather([second, training(tmp_path / "a", [3.0, 1.4, 1.10], seed=0, baselines={})])


def test_seeds_of_one_training(curves: Curves, tmp_path: Path) -> None:
    assert [curve.seed for curve in curves.curves] == [0, 1]
    assert [curve.best for curve in curves.curves] == [1.10, 1.04]
    assert curves.timesteps == [0, 1000, 2000]
    assert [mean.mean for mean in curves.means()] == pytest.approx([4.0, 1.3, 1.07])
    assert (curves.means()[0].low, curves.means()[0].high) == (3.0, 5.0)
    assert curves.episodes == 2
    assert curves.best_baselines(1) == [("sjf", 1.14)], "one of them was run with baselines"
    assert "seed" not in curves.training
    assert curves.training["settings"]["gamma"] > 0.9
    assert [curve.made.physics for curve in curves.curves] == [{}, {"training": "a"}]
    path = tmp_path / "curves.json"
    path.write_bytes(encode_curves(curves))
    assert read_curves(path) == curves
    assert path.read_text().count("\n") == 4


def test_seeds_are_averaged_at_the_same_points(curves: Curves) -> None:
    """The second seed is half way from 8 to 6 at 300 decisions, and has ended with 6 before 500."""
    first = msgspec.structs.replace(curves.curves[0], timesteps=[0, 300, 500], costs=[8.0, 5.0, 4.0])
    second = msgspec.structs.replace(curves.curves[1], timesteps=[0, 200, 400], costs=[8.0, 8.0, 6.0])
    drifted = msgspec.structs.replace(curves, timesteps=[0, 300, 500], curves=[first, second])
    assert [mean.mean for mean in drifted.means()] == pytest.approx([8.0, 6.0, 5.0])


def test_searches_validate_at_about_the_same_points() -> None:
    """Generations differ in length: points are apart by less than the interval that was asked for."""
    assert _comparable([0, 1100, 2200, 2500], [0, 1800, 2800, 2900], 1000)
    assert not _comparable([0, 1000, 2100], [0, 2000, 2200], 1000)
    assert not _comparable([0, 1000, 2100], [0, 1000], 1000)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 0}, "first and .*second: both have seed 0"),
        ({"learning_rate": 0.5}, r"differ in settings.learning_rate \(.* and 0.5\); only the seed may differ"),
        ({"imitation": {"scheduler": "sjf"}}, r"imitation.scheduler \(none and sjf\)"),
        ({"version": "2.0"}, "versions 1.0 and 2.0 of gpusched-env"),
        ({"made": {"physics": {"training": "b"}}}, r"second: made by other physics \(training\) than .*first"),
        ({"costs": [2.0]}, "2 and 1 validations, up to 1,000 and 0 decisions; --resume completes"),
        ({"baselines": {"sjf": 1.2}}, "baseline sjf costs 1.2 there and 1.14 in another"),
    ],
)
def test_others_are_refused(tmp_path: Path, other: dict[str, Any], message: str) -> None:
    first = training(tmp_path / "first", [2.0, 1.0], seed=0, made=MADE)
    second = training(tmp_path / "second", **{"costs": [2.0, 1.1], "seed": 1, **other})
    with pytest.raises(InputError, match=message):
        gather([first, second])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.yaml", None, "is not the folder of a training, it has no config.yaml"),
        ("config.yaml", "training: 3\nprovenance: {}\n", "not the configuration of a training"),
        ("validation.json", None, "validation.json: cannot be read"),
        ("validation.json", "[]", "not the learning curve of a training"),
        ("validation.json", '{"seeds": [1], "baselines": {}, "validations": []}', "has no validation yet"),
    ],
)
def test_damaged_folders(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    folder = training(tmp_path / "run", [1.0])
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(InputError, match=message):
        gather([folder])


def test_other_files_are_refused(tmp_path: Path, curves: Curves) -> None:
    path = tmp_path / "curves.json"
    with refused(InputError, "cannot be read"):
        read_curves(path)
    path.write_text("{}")
    with refused(InputError, "--json", "writes"):
        read_curves(path)
    path.write_bytes(encode_curves(msgspec.structs.replace(curves, schema="gpusched-curves/0")))
    with refused(InputError, "'gpusched-curves/0'", "'gpusched-curves/1'"):
        read_curves(path)


def test_the_frame_holds_the_best_scheduler_and_leaves_out_untrained_agents(curves: Curves) -> None:
    costs = [100.0, 50.0, 12.0, 11.0, 10.0, 10.0, 10.0, 10.0, 10.0, 9.0]
    long = msgspec.structs.replace(
        curves,
        baselines={"best": 9.5, "next": 11.5, "worst": 30.0},
        timesteps=list(range(10)),
        curves=[msgspec.structs.replace(curves.curves[0], timesteps=list(range(10)), costs=costs)],
    )
    bottom, top = limits(long)
    assert 8.0 < bottom < 9.0
    assert 12.0 < top < 30.0
    picture = curves_svg(long).decode()
    assert "best 9.5" in picture
    assert "next 11.5" in picture
    assert "worst" not in picture
    assert "95 % interval" not in picture, "there is none of one seed"
    bottom, top = limits(msgspec.structs.replace(long, baselines={"best": 200.0}))
    assert top > 200.0
    steady = [msgspec.structs.replace(long.curves[0], costs=[16.0, 12.5, *costs[2:]])]
    bottom, top = limits(msgspec.structs.replace(long, curves=steady))
    assert top > 16.0, "all of it, if that is not much more"


def test_equal_curves_are_equal_files(curves: Curves) -> None:
    picture = curves_svg(curves)
    assert picture == curves_svg(curves)
    assert b"95 % interval" in picture
    assert b"<dc:date>" not in picture


def test_labels_keep_their_distance() -> None:
    assert spread_labels([1.0, 5.0, 9.0], 2.0) == [1.0, 5.0, 9.0]
    assert spread_labels([4.0, 4.0, 4.0], 2.0) == [2.0, 4.0, 6.0]
    assert spread_labels([], 2.0) == []
