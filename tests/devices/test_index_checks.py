"""The build that checks every index: it ends a process at the first wrong one, and the fuzzer finds none."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from gpusched_env.compiling import CHECK_INDICES

pytestmark = pytest.mark.slow
"""Everything is compiled once more."""

WRONG_INDEX = """
from gpusched_env import build_problem, load_scenario
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.scheduling.commands import Launch

device = CompiledDevice()
device.reset(build_problem(load_scenario("Toy")), 0)
device.apply(Launch(0))
device.advance()
print("so far all is well", flush=True)
device.arena.env["{field}"] = {value}
device.view()
device.apply(Launch(1))
device.advance()
print("not noticed", flush=True)
"""


def checked(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"GPUSCHED_CHECK_INDICES": "1"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_the_usual_build_does_not_check() -> None:
    assert not CHECK_INDICES


@pytest.mark.parametrize("value", [10**6, -7])
def test_an_index_outside_of_its_table_ends_the_process(value: int) -> None:
    done = checked("-c", WRONG_INDEX.format(field="started_first", value=value))
    assert done.stdout == "so far all is well\n"
    assert re.search(rf"gpusched: index {value} \(1 records\) is outside of the \d+ records of 'launch'", done.stderr)
    assert done.returncode == -signal.SIGABRT


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("more", [(), ("--launches",)], ids=str)
def test_the_fuzzer_finds_no_wrong_index(more: tuple[str, ...]) -> None:
    program = "from gpusched_env.experiments.cli import main; main()"
    workers = str(os.cpu_count() or 1)
    done = checked("-c", program, "fuzz", "--episodes", "2000", "--seed", "2", "--workers", workers, *more)
    assert "2,000 episodes, no difference" in done.stdout
    assert done.returncode == 0, done.stderr
