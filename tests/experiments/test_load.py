"""A comparison that was saved is the same when it is loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import gpusched_env
from gpusched_env.data import read_recorded
from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import encoded
from gpusched_env.experiments.report.result import result_of
from tests.notebook import html
from tests.refusals import refused


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A workload file of one's own."""
    file = tmp_path / "mine.workload.json"
    file.write_bytes(msgspec.json.encode(read_recorded("toy_urgent")))
    return file


def test_nothing_that_is_shown_changes(tmp_path: Path, own: Path) -> None:
    import pandas.testing

    saved = gpusched_env.compare(
        "Toy", "sjf,time-slicing", seeds=2, workers=1, record="kernels", tenants={"urgent": {"workload": str(own)}}
    )
    saved.save(tmp_path / "out")
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    own.unlink()
    found = gpusched_env.load_comparison(tmp_path / "out")
    for of in ("episodes", "schedulers", "jobs", "kernels"):
        pandas.testing.assert_frame_equal(found.to_frame(of), saved.to_frame(of))
    for kind in ("cost", "cdf", "slo", "tradeoff", "timeline", "utilisation"):
        assert found.plot(kind).to_json() == saved.plot(kind).to_json()
    assert found.difference("time-slicing") == saved.difference("time-slicing")
    assert (html(found), repr(found)) == (html(saved), repr(saved))
    assert encoded(result_of(found)) == encoded(result_of(saved))
    assert result_of(found).workloads == {str(own): digest}
    assert set(found.save(tmp_path / "again")) == {path.name for path in (tmp_path / "out").iterdir()}


def test_undefined_figures_and_interrupts_stay(run_fake: Callable[..., Comparison], tmp_path: Path) -> None:
    def stop(finished: int, share: float) -> None:
        if finished == 1:
            raise KeyboardInterrupt

    saved = run_fake("IdleDevice", record="jobs", on_progress=stop)
    saved.save(tmp_path / "out")
    found = gpusched_env.load_comparison(tmp_path / "out")
    assert encoded(result_of(found)) == encoded(result_of(saved))
    assert found.interruption == "interrupted: 1 of 6 episodes finished, the figures are partial"
    with refused(InputError, "recorded"):
        found.to_frame("kernels")


def test_what_cannot_be_loaded_is_named(comparison: Comparison, tmp_path: Path, own: Path) -> None:
    with refused(InputError, "none/result.json", "read"):
        gpusched_env.load_comparison(tmp_path / "none")
    folder = tmp_path / "out"
    comparison.save(folder)
    jobs, result = folder / "jobs.parquet", folder / "result.json"
    whole, text = jobs.read_bytes(), result.read_text()
    for broken in (whole[:-20], b""):
        jobs.write_bytes(broken)
        with refused(InputError, "incomplete"):
            gpusched_env.load_comparison(folder)
    jobs.unlink()
    with refused(InputError, "jobs.parquet", "read"):
        gpusched_env.load_comparison(folder)
    jobs.write_bytes(whole)
    (folder / "timelines.npz").write_bytes(b"PK\x03\x04 nothing")
    with refused(InputError, "incomplete"):
        gpusched_env.load_comparison(folder)
    data = json.loads(text)
    for change, message in (
        ({"schema": "gpusched-comparison/1"}, "expected 'gpusched-comparison/2'"),
        ({"schedulers": {"patient": {}}}, "not a comparison"),
        ({"workloads": {str(own): "0" * 64}}, r"00000000-mine\.workload\.json: cannot be read"),
    ):
        result.write_text(json.dumps(data | change))
        with pytest.raises(InputError, match=message):
            gpusched_env.load_comparison(folder)
    (folder / "00000000-mine.workload.json").write_bytes(own.read_bytes())
    with refused(InputError, "workload"):
        gpusched_env.load_comparison(folder)
