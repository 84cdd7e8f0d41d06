"""Schedulers with options as text."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.registered import options_of, parse_spec, split_specs, with_options
from gpusched_env.errors import InputError
from tests.refusals import refused


class Made(PassThrough):
    """Remembers its options."""

    def __init__(
        self,
        share: float | None = 1.0,
        depth: int = 2,
        eager: bool = False,
        mode: Literal["save", "drain"] = "save",
        other=None,  # type: ignore[no-untyped-def]
    ) -> None:
        self.options = (share, depth, eager, mode, other)


def test_commas_in_parentheses_separate_options() -> None:
    text = " fifo, fikit(epsilon_us=50, queues=4),,own.py:Mine(depth=3) "
    assert split_specs(text) == ["fifo", "fikit(epsilon_us=50, queues=4)", "own.py:Mine(depth=3)"]
    assert split_specs("") == []


@pytest.mark.parametrize("text", ["mps(share=50", "mps)share=50(", "fifo,mps(share=50))"])
def test_parentheses_must_match(text: str) -> None:
    with refused(InputError, "NAME", "expected"):
        split_specs(text)


def test_a_spec_is_a_name_and_options_as_text() -> None:
    assert parse_spec("fifo") == ("fifo", {})
    assert parse_spec("fifo()") == ("fifo", {})
    assert parse_spec("my (1).py:Name(option=2)") == ("my (1).py:Name", {"option": "2"})
    assert parse_spec("my (1).py:Name") == ("my (1).py:Name", {})
    assert parse_spec("own(file=a.py:Name)") == ("own", {"file": "a.py:Name"})
    assert parse_spec(" fikit ( epsilon_us = 1e2 , runs=3 ) ") == ("fikit", {"epsilon_us": "1e2", "runs": "3"})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("my (1).py:Name(option=2)", ("my (1).py:Name", {"option": "2"})),
        ("my (1).py:Name", ("my (1).py:Name", {})),
        ("a (b (c)).py:Name()", ("a (b (c)).py:Name", {})),
        ("fifo(path=x.py:Y)", ("fifo", {"path": "x.py:Y"})),
    ],
)
def test_a_path_may_have_parentheses(spec: str, expected: tuple[str, dict[str, str]]) -> None:
    assert split_specs(f"{spec},fifo") == [spec, "fifo"]
    assert parse_spec(spec) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mps(50)", "'50' is no option; expected OPTION=VALUE"),
        ("mps(share=)", "'share=' is no option"),
        ("mps(share=5,share=6)", "share is given twice"),
        ("mps(share=5)(share=6)", r"expected NAME or NAME\(OPTION=VALUE"),
        ("mps(share=5", r"expected NAME or NAME\(OPTION=VALUE"),
        ("mps(share=5)x", r"expected NAME or NAME\(OPTION=VALUE"),
    ],
)
def test_what_is_no_spec_is_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_spec(spec)


def test_values_are_read_as_the_annotation_says() -> None:
    made = with_options(
        Made, "made", {"share": "50", "depth": "3", "eager": "true", "mode": "drain", "other": "[1, 2]"}
    )
    assert isinstance(made, Made)
    assert made.options == (50.0, 3, True, "drain", [1, 2])
    assert [type(value) for value in made.options] == [float, int, bool, str, list]
    assert with_options(Made, "made", {"share": "inf"}).options[0] == math.inf  # type: ignore[attr-defined]
    assert with_options(Made, "made", {"share": "none"}).options[0] is None  # type: ignore[attr-defined]


def test_values_that_are_no_text_are_left_alone() -> None:
    given = np.zeros(3)
    assert with_options(Made, "made", {"other": given}).options[-1] is given  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": "2.5"}, "scheduler 'made': depth=2.5: Expected `int`"),
        ({"mode": "reset"}, "scheduler 'made': mode=reset: Invalid enum value 'reset'"),
        ({"dept": "2"}, "scheduler 'made' has no option 'dept'; did you mean 'depth'"),
    ],
)
def test_values_that_do_not_fit_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_options(Made, "made", options)


def test_options_and_their_defaults() -> None:
    assert options_of(Made) == {"share": 1.0, "depth": 2, "eager": False, "mode": "save", "other": None}
    assert options_of(PassThrough) == {}
