"""An edit to a source is seen by all compiled functions that it can end up in, in the next process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gpusched_env
from gpusched_env.building import is_built
from gpusched_env.closure import ROOT as ROOT_OF_PACKAGE
from gpusched_env.closure import closure, modules_of
from gpusched_env.compiling import callback_unit, sources_key
from gpusched_env.devices.compiled.entry import UNITS, compile_units

PROBE = """
from gpusched_env.compiling import cached
from gpusched_env.hardware.contention import tilt

@cached()
def probe(demand):
    return tilt(demand)
"""
ASK_PROBE = """
from gpusched_env.envs.probe import probe
print(probe(2.0), sum(probe.whole.stats.cache_hits.values()))
"""
ASK_REFERENCE = """
from gpusched_env import build_problem, load_scenario, make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.baselines.registry import make_scheduler
problem = build_problem(load_scenario("InferenceBesideTraining", horizon_us=2000.0))
episode = run_episode(make_scheduler("pass-through"), problem, make_device("reference"), 0, record="kernels")
print(episode.timeline.kernels.array.sum())
"""
ASK_DEVICE = """
from gpusched_env import build_problem, load_scenario, make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.baselines.registry import make_scheduler
problem = build_problem(load_scenario("InferenceBesideTraining"))
# Nothing is kept apart: the law is about blocks of different kernels on one SM.
episode = run_episode(make_scheduler("pass-through"), problem, make_device("compiled"), 0, record="kernels")
print(episode.timeline.kernels.array.sum())
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package, to be edited."""
    without = shutil.ignore_patterns("__pycache__", "*.nb[ci]")
    shutil.copytree(Path(gpusched_env.__file__).parent, tmp_path / "gpusched_env", ignore=without)
    return tmp_path


def ask(copy: Path, script: str) -> str:
    """What a fresh process prints that imports the copy."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    # Python itself tells files apart by whole seconds and sizes.
    environment |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    check = f"import gpusched_env\nassert gpusched_env.__file__.startswith({str(copy)!r}), gpusched_env.__file__\n"
    command = [sys.executable, "-c", check + script]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def double(copy: Path, name: str, value: float) -> None:
    """A constant of the laws of contention."""
    path = copy / "gpusched_env" / "hardware" / "contention.py"
    old, text = f"\n{name} = {value}\n", path.read_text()
    assert old in text
    path.write_text(text.replace(old, f"\n{name} = {2 * value}\n"))


def test_an_edited_law_is_compiled_anew(copy: Path) -> None:
    probe = copy / "gpusched_env" / "envs" / "probe.py"
    probe.write_text(PROBE)
    before, hits = ask(copy, ASK_PROBE).split()
    assert (float(before), hits) == (pytest.approx((1.0 / 3.83) ** 1.7), "0")
    assert ask(copy, ASK_PROBE).split() == [before, "1"]
    double(copy, "TILT_FULL", 4.83)
    after, hits = ask(copy, ASK_PROBE).split()
    assert (float(after), hits) == (pytest.approx((1.0 / 8.66) ** 1.7), "0")
    # What was compiled before is gone.
    assert len(list((probe.parent / "__pycache__").glob("probe.probe-*"))) == 1


@pytest.mark.long
def test_an_edited_law_is_the_reference_s(copy: Path) -> None:
    before = ask(copy, ASK_REFERENCE)
    assert ask(copy, ASK_REFERENCE) == before
    double(copy, "TILT_FULL", 4.83)
    assert ask(copy, ASK_REFERENCE) != before


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_edited_law_changes_the_compiled_device(copy: Path) -> None:
    before = float(ask(copy, ASK_DEVICE))
    double(copy, "YOUNGER", 0.4)
    assert float(ask(copy, ASK_DEVICE)) != before


def test_there_is_no_other_cache() -> None:
    """Numba's own notices edits to one file only."""
    package = Path(gpusched_env.__file__).parent
    folders = [package, *(package / name for name in ("agents", "baselines", "experiments"))]
    sources = {path.relative_to(package) for folder in folders for path in folder.rglob("*.py")}
    assert Path("agents/exported.py") in sources
    assert not {path for path in sources if "cache=True" in (package / path).read_text()}


def test_what_is_compiled_imports_nothing_late() -> None:
    """A key is made of what modules import at once: an edit to what a function imports later would not be seen."""
    marks = re.compile(r"^ *@(law|procedure|part|called|inlined|cached|native|njit)\b", re.M)
    late = re.compile(r"^[ \t]+(from|import) +gpusched_env", re.M)
    package = Path(gpusched_env.__file__).parent
    folders = [package, *(package / name for name in ("agents", "baselines", "experiments"))]
    compiled = [path for f in folders for path in f.rglob("*.py") if marks.search(path.read_text())]
    assert len(compiled) > 50
    assert not [path for path in compiled if late.search(path.read_text())]


def test_keys_follow_the_imports() -> None:
    """Modules of one folder share a key; folders of which none has all that the other has do not."""
    assert sources_key("gpusched_env.hardware.solo") == sources_key("gpusched_env.hardware.power")
    folders = ("hardware.solo", "devices.compiled.entry", "devices.reference.blocks", "envs.stepping", "agents.forward")
    assert len({sources_key(f"gpusched_env.{module}") for module in folders}) == len(folders)
    device = closure(modules_of("devices/compiled"), at_once=True)
    assert ROOT_OF_PACKAGE / "hardware" / "contention.py" in device
    assert ROOT_OF_PACKAGE / "workload" / "importers" / "kineto.py" not in device


def test_what_was_compiled_is_known_as_kept() -> None:
    """Also in the process that compiled it: nobody starts another one for nothing."""
    compile_units()
    assert is_built(UNITS)


def never_compiled() -> int:
    return 0


def test_what_was_never_compiled_is_not_kept() -> None:
    assert not is_built([callback_unit(never_compiled, never_compiled)])
