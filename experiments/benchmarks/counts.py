"""What can be counted of speed, the same on every machine: events, calls, compilations, bytes.

Times depend on the machine and on what else it does; counts do not. ``counts.json`` has those of the last release, and
a test fails where one is a tenth greater now. ``gpusched lab bench --counts --write`` writes the file.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec

from gpusched_env.agents.files import replacing
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.building import VARIABLE, WAIT
from gpusched_env.devices import make_device
from gpusched_env.devices.reference.world import Clock
from gpusched_env.display.table import Table
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.benchmarks.environments import AT_INTERVALS, SCENARIO, random_episode
from gpusched_env.experiments.benchmarks.timing import FIRST_USE
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario

FILE: Final = Path(__file__).with_name("counts.json")
WORSE: Final = 1.1
"""The factor from which a count is worse."""
CALLED: Final = ("edf", "lithos", "orion", "plan", "tally")
"""Schedulers whose calls are counted."""
HORIZON_US: Final = 10_000.0
"""Simulated time of an episode on the compiled device."""
BRIEF_US: Final = 2_000.0
"""Simulated time of an episode on the reference device."""
STEPS: Final = 500
"""Steps of the environment whose memory is measured."""

Counts = dict[str, float]

COLD: Final = f"""
from gpusched_env.building import build, units_at
from gpusched_env.envs.drivers import UNITS
from gpusched_env.numba_internals import event
class Compilations(event.Listener):
    count = 0
    def on_start(self, event):
        self.count += 1
    def on_end(self, event):
        pass
compilations = Compilations()
with event.install_listener("numba:compile", compilations):
    # In this process, as what others build is not counted here.
    build(units_at(UNITS))
{textwrap.indent(FIRST_USE, "    ")}
print(compilations.count)
"""
"""The first use in a process, and how many functions it compiled."""


def cold_start() -> Counts:
    """Functions that a first use compiles, and files and bytes that are kept of them."""
    with tempfile.TemporaryDirectory(prefix="gpusched-counts-") as cache:
        run = subprocess.run(
            [sys.executable, "-c", COLD],
            env={**os.environ, "NUMBA_CACHE_DIR": cache, VARIABLE: WAIT},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        files = [file.stat().st_size for file in Path(cache).rglob("*.nbc")]
    compiled = float(run.stdout.splitlines()[-1])
    return {"first use: compilations": compiled, "first use: files": len(files), "first use: bytes": sum(files)}


def device_events() -> Counts:
    """Events of the reference device, whose queue can be counted from outside."""
    with _calls(Clock, "step") as events:
        episode = run_episode(make_scheduler("fifo"), _short(SCENARIO, BRIEF_US), make_device("reference"), 0)
    return {f"{SCENARIO}: events a launch (fifo, reference device)": len(events) / episode.decisions}


def scheduler_calls() -> Counts:
    """Calls of schedulers in Python, waits included."""
    found = {}
    for name in CALLED:
        scheduler = make_scheduler(name)
        with _calls(type(scheduler), "decide") as calls:
            run_episode(scheduler, _short(AT_INTERVALS), make_device("compiled"), 0)
        found[f"{AT_INTERVALS}: calls of {name} in {HORIZON_US / 1e3:g} ms"] = float(len(calls))
    return found


def memory() -> Counts:
    """The most that Python and NumPy have allocated at a time for an episode; compiled code is loaded before."""

    def scheduled() -> None:
        run_episode(make_scheduler("edf"), _short(AT_INTERVALS), make_device("compiled"), 0)

    episodes: dict[str, Callable[[], object]] = {
        f"{SCENARIO}: bytes for {STEPS} steps": lambda: random_episode("compiled", STEPS),
        f"{AT_INTERVALS}: bytes for an episode of edf": scheduled,
    }
    found = {}
    for name, play in episodes.items():
        play()
        gc.collect()
        tracemalloc.start()
        play()
        found[name] = float(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return found


def _short(scenario: str, horizon_us: float = HORIZON_US) -> Problem:
    return build_problem(load_scenario(scenario, horizon_us=horizon_us))


@contextmanager
def _calls(of: type, method: str) -> Iterator[list[None]]:
    """A list that has one more item with each call of a method."""
    calls: list[None] = []
    original = getattr(of, method)

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return original(self, *arguments, **named)

    with mock.patch.object(of, method, counted):
        yield calls


GROUPS: Final[Mapping[str, Callable[[], Counts]]] = {
    "device": device_events,
    "schedulers": scheduler_calls,
    "memory": memory,
    "first use": cold_start,
}


def count(on_group: Callable[[str, float], object] = lambda name, cpu_s: None) -> Counts:
    """Count everything; ``on_group`` is told each group and the processor time that it took, which is not judged."""
    found: Counts = {}
    for name, group in GROUPS.items():
        began = sum(os.times()[:4])
        found |= group()
        on_group(name, sum(os.times()[:4]) - began)
    return found


def known() -> Counts:
    """The counts of the last release."""
    return decoded(read_bytes(FILE), Counts, f"{FILE}: not what gpusched lab bench --counts --write wrote")


def write(found: Counts) -> None:
    """Make these the counts to hold others against."""
    with replacing(FILE) as partial:
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")


def worse(found: Counts, before: Counts) -> list[str]:
    """What is a tenth greater than it was, or was not counted, in words."""
    said = []
    for name, value in found.items():
        if name not in before:
            said.append(f"{name}: {value:,.4g}, not known before")
        elif value > WORSE * before[name]:
            said.append(f"{name}: {value:,.4g}, was {before[name]:,.4g}")
    return said


def table(found: Counts, before: Counts) -> Table:
    """Counts of now beside those of the last release."""
    rows = [
        (name, f"{value:,.6g}", f"{before[name]:,.6g}" if name in before else "", _change(value, before.get(name)))
        for name, value in found.items()
    ]
    return Table("gpusched lab bench --counts", ("count", "now", "last release", ""), rows)


def _change(value: float, before: float | None) -> str:
    return "" if not before else f"{value / before - 1.0:+z.1%}"
