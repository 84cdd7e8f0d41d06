"""Schedulers and devices by name, module or file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpusched_env.baselines.fifo import Fifo
from gpusched_env.baselines.mps import Mps
from gpusched_env.errors import InputError
from gpusched_env.experiments.plugins import check_scheduler, describe_scheduler, new_device, new_scheduler


def test_a_registered_name_a_class_an_object_and_a_reference_all_do() -> None:
    shared = Fifo()
    assert type(new_scheduler("fifo")) is Fifo
    assert type(new_scheduler(Fifo)) is Fifo
    assert new_scheduler(shared) is shared
    assert type(new_scheduler("gpusched_env.baselines.fifo:Fifo")) is Fifo
    assert type(new_scheduler(lambda: Fifo())) is Fifo


def test_options_follow_the_name_of_either_kind() -> None:
    for source in ("mps(share=50)", "gpusched_env.baselines.mps:Mps(share=50)"):
        check_scheduler(source)
        assert type(new_scheduler(source)) is Mps
        assert describe_scheduler(source) == describe_scheduler("mps")


def test_a_file_is_loaded_once_and_described_by_its_docstring(fake: Callable[[str], str]) -> None:
    assert type(new_scheduler(fake("Patient"))) is type(new_scheduler(fake("Patient")))
    assert describe_scheduler(fake("Patient")) == "Waits, always."
    assert type(new_device(fake("FakeDevice"))).__name__ == "FakeDevice"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("fifoo", "did you mean 'fifo'"),
        ("no.such.module:X", "cannot import 'no.such.module'"),
        ("gpusched_env.baselines.fifo:Fifa", "did you mean 'Fifo'"),
        ("missing.py:X", "no such file: missing.py"),
        ("mpss(share=50)", "unknown scheduler 'mpss'; did you mean 'mps'"),
        ("mps(shares=50)", "scheduler 'mps' has no option 'shares'; did you mean 'share'"),
        ("mps(share=0)", "share is 0.0, must be above 0"),
        ("gpusched_env.baselines.mps:Mps(share=half)", "share=half: Expected `float | null`"),
        ("gpusched_env.baselines.fifo:np", "is no scheduler"),
    ],
)
def test_wrong_names_are_refused(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_scheduler(source)


def test_a_file_that_does_not_load_is_named(tmp_path: Path) -> None:
    file = tmp_path / "half.py"
    file.write_text("class Half(:\n")
    with pytest.raises(InputError, match=r"half\.py"):
        check_scheduler(f"{file}:Half")
