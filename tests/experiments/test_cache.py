"""``gpusched lab cache``: what was compiled, and whether it is still of its source."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest

from gpusched_env.compiling import cached
from gpusched_env.experiments.lib.kept import list_kept
from gpusched_env.scheduling import reward
from tests.conftest import Run


def test_what_was_compiled_is_listed_and_cleared(
    gpusched: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    function = reward.weighted_sum.py_func  # type: ignore[attr-defined]
    again = cached()(function)
    assert again(np.array([2.0]), np.array([3.0])) == 6.0
    (kept,) = list_kept()
    assert (kept.folder, kept.unit, kept.stale) == ("scheduling", "reward.weighted_sum", False)
    assert kept.size == kept.file.stat().st_size
    kept.file.rename(kept.file.with_name(kept.file.name.replace("-", "-0", 1)))
    assert gpusched("lab", "cache") == 0
    shown = capsys.readouterr().out
    assert "weighted_sum" in shown
    assert "stale" in shown
    assert gpusched("lab", "cache", "--clear") == 0
    assert "Removed 1 units" in capsys.readouterr().out
    assert not list(folder.rglob("*.nbc"))


def test_building_and_clearing_at_once_is_refused(gpusched: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpusched("lab", "cache", "--build", "--clear") == 2
    assert "one at a time" in capsys.readouterr().err
