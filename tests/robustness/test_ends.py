"""Programs that are killed or asked to end: nothing of them goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.robustness.test_command_line import environment

SLEEPERS = """
import os, pathlib, time
from gpusched_env.experiments.lib.workers import run_all

def note_and_sleep(name):
    pathlib.Path(name + ".part").write_text(str(os.getpid()))
    os.rename(name + ".part", name)
    time.sleep(3600)

run_all(note_and_sleep, ["one", "two"], 2)
"""
ASKED = """
from gpusched_env.experiments import cli

cli.app = lambda **_: (print("ready", flush=True), __import__("time").sleep(3600))
cli.main()
"""


def gone(process: int) -> bool:
    """Whether a process has ended; one that nobody waited for has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    parent = subprocess.Popen([sys.executable, "-c", SLEEPERS], cwd=tmp_path, env=environment())
    while not all(file.exists() for file in files):
        assert parent.poll() is None
        time.sleep(0.05)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    # Without the watch they sleep for an hour, and this test with them.
    while not all(gone(int(file.read_text())) for file in files):
        time.sleep(0.05)


def test_a_request_to_end_is_an_interrupt(tmp_path: Path) -> None:
    asked = subprocess.Popen(
        [sys.executable, "-c", ASKED], cwd=tmp_path, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert asked.stdout is not None
    assert asked.stdout.readline() == "ready\n"
    asked.terminate()
    assert asked.communicate()[1] == "interrupted\n"
    assert asked.returncode == 130
