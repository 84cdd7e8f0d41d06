"""Settings of every test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., int]

# The compiled device is tested, not what answers in its place meanwhile.
os.environ.setdefault("GPUSCHED_COMPILE", "wait")


def pytest_configure(config: pytest.Config) -> None:
    """A listing runs nothing: assertions are not rewritten and hypothesis reads no constants, most of its time."""
    if config.option.collectonly:
        sys.meta_path[:] = [
            finder for finder in sys.meta_path if type(finder).__module__ != "_pytest.assertion.rewrite"
        ]
        config.pluginmanager.unregister(name="hypothesispytest")
    from hypothesis import HealthCheck, settings

    # Neither an example nor drawing one may fail for being slow: the first use of a device compiles, machines differ.
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before several test processes start: they find in the cache what was compiled once."""
    if getattr(session.config.option, "numprocesses", None) and not session.config.option.collectonly:
        root = Path(__file__).resolve().parents[1]
        subprocess.run([sys.executable, "-m", "tests.compiled"], cwd=root, check=True)


@pytest.fixture
def gpusched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command line in this process, in an empty folder; returns the exit status."""
    from gpusched_env.experiments.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["gpusched", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run
