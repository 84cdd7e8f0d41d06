"""An edit to a source is seen by all compiled functions that it can end up in, in the next process."""

from __future__ import annotations

import gc
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from numba import types
from numba.core.registry import cpu_target

import gpusched_env
from gpusched_env.building import is_built
from gpusched_env.caching import KeptFunctions
from gpusched_env.closure import closure, modules_of, source
from gpusched_env.compiling import APART, callback_unit, sources_key
from gpusched_env.devices.compiled.entry import UNITS, compile_units
from gpusched_env.sources import name_of

PROBES = {
    "tilted": """
from gpusched_env.compiling import cached
from gpusched_env.hardware.contention import tilt

@cached()
def tilted(demand):
    return tilt(demand)
""",
    "timed": """
from gpusched_env.compiling import cached
from gpusched_env.hardware.clock import to_us

@cached()
def timed(ps):
    return to_us(ps)
""",
    "importer": """
from gpusched_env.envs.tilted import tilted
from gpusched_env.envs.timed import timed
LAST = 1
""",
}
"""Modules of one folder; two have compiled functions, each with another law."""
ASK_PROBES = """
from gpusched_env.envs.importer import tilted, timed
from gpusched_env.numba_internals import event
class Compilations(event.Listener):
    count = 0
    def on_start(self, event):
        self.count += 1
    def on_end(self, event):
        pass
for probe, argument in ((tilted, 2.0), (timed, 3_000_000)):
    compilations = Compilations()
    with event.install_listener("numba:compile", compilations):
        print(probe(argument), compilations.count > 0)
"""
ASK_KEYS = """
from gpusched_env.compiling import sources_key
print(*map(sources_key, ("gpusched_env.devices.compiled.entry", "gpusched_env.envs.stepping")))
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


def edit(copy: Path, name: str, old: str, new: str) -> None:
    path = copy / "gpusched_env" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def double(copy: Path, name: str, value: float) -> None:
    """A constant of the laws of contention."""
    edit(copy, "hardware/contention.py", f"\n{name} = {value}\n", f"\n{name} = {2 * value}\n")


def ask_probes(copy: Path) -> tuple[list[float], list[str]]:
    """What the probes give, and which were compiled."""
    found = [line.split() for line in ask(copy, ASK_PROBES).splitlines()]
    names = ("tilted", "timed")
    return [float(value) for value, _ in found], [
        name for name, (_, done) in zip(names, found, strict=True) if done == "True"
    ]


@pytest.fixture
def probed(copy: Path) -> Path:
    """The package with the probes, which are compiled."""
    for name, text in PROBES.items():
        (copy / "gpusched_env" / "envs" / f"{name}.py").write_text(text)
    assert ask_probes(copy) == ([pytest.approx((1.0 / 3.83) ** 1.7), 3.0], ["tilted", "timed"])
    assert ask_probes(copy)[1] == []
    return copy


def test_an_edited_law_is_compiled_anew_where_it_is_read(probed: Path) -> None:
    double(probed, "TILT_FULL", 4.83)
    assert ask_probes(probed) == ([pytest.approx((1.0 / 8.66) ** 1.7), 3.0], ["tilted"])
    # What was compiled before is gone.
    folder = probed / "gpusched_env" / "envs" / "__pycache__"
    assert [len(list(folder.glob(f"{name}.{name}-*"))) for name in ("tilted", "timed")] == [1, 1]
    edit(probed, "hardware/clock.py", "return ps / 1e6", "return ps / 3e6")
    assert ask_probes(probed) == ([pytest.approx((1.0 / 8.66) ** 1.7), 1.0], ["timed"])


def test_what_changes_no_compiled_function_compiles_none(probed: Path) -> None:
    """Comments, docstrings and layout, where a law is, where it is called and between; and what imports it."""
    before = ask_probes(probed)[0]
    edit(probed, "hardware/contention.py", '"""How much older warps go first', '# Older ones.\n    """How much')
    edit(probed, "hardware/contention.py", "\nTILT_FULL", "\n\n# Fitted.\nTILT_FULL")
    edit(probed, "envs/tilted.py", "def tilted(demand):\n", 'def tilted(demand):\n    """Tilted."""\n\n')
    edit(probed, "envs/tilted.py", "\nfrom", "\n# Laws.\nfrom")
    edit(probed, "envs/timed.py", "    return", '    """Timed."""\n    return')
    edit(probed, "envs/importer.py", "LAST = 1", "LAST = 2")
    edit(probed, "building.py", "LOOK_S: Final = 0.2", "LOOK_S: Final = 0.3")
    assert ask_probes(probed) == (before, [])


def test_comments_in_all_sources_leave_the_device_as_it_is(copy: Path) -> None:
    before = ask(copy, ASK_KEYS)
    for path in (copy / "gpusched_env").rglob("*.py"):
        path.write_text(f"# As before.\n\n{path.read_text()}\n# The end.\n")
    assert ask(copy, ASK_KEYS) == before
    double(copy, "YOUNGER", 0.4)
    assert not set(ask(copy, ASK_KEYS).split()) & set(before.split())


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
    """Modules share a key only if they have the same closure."""
    modules = ("hardware.solo", "hardware.power", "devices.compiled.entry", "devices.reference.blocks", "envs.stepping")
    assert len({sources_key(f"gpusched_env.{module}") for module in modules}) == len(modules)
    device = closure(["gpusched_env.devices.compiled.entry"], at_once=True, apart=APART)
    names = [name_of(path) for path in device]
    assert {"hardware/contention.py", "devices/rules/l2.py", "compiling.py"} <= {*names}
    assert not [name for name in names if name.startswith(("building", "caching", "display", "envs", "reading"))]


def test_what_compiled_functions_call_is_in_their_closure() -> None:
    """Whatever it is called by: also what stands in for an access function of a text that both devices share."""
    for module in LAWFUL:
        importlib.import_module(module)
    kept = [each for each in gc.get_objects() if issubclass(type(each), KeptFunctions) and module_of(each)]
    assert {"entry._drive", "entry._end", "stepping.step_range", "outlook.mean_losses"} <= {each.name for each in kept}
    outside = []
    for each in kept:
        files = closure([module_of(each)], at_once=True, apart=APART)
        called = {function.__module__ for function in reached(each._function)}
        outside += [(each.name, module) for module in called if source(module) not in files]
    assert outside == []


LAWFUL = [
    *modules_of("devices/compiled"),
    *modules_of("envs"),
    *modules_of("planning"),
    *modules_of("games/fleet/stepping"),
]


def module_of(kept: KeptFunctions) -> str:
    module: str = kept._function.__module__
    return module if module.startswith("gpusched_env.") else ""


def reached(function: Any) -> set[Any]:
    """A function and all of this package that its compiled form calls, by names in the texts."""
    found: set[Any] = set()
    ahead = [function]
    while ahead:
        function = ahead.pop()
        if function not in found:
            found.add(function)
            named = [meant(each) for each in named_by(function)]
            ahead += [each for each in named if each is not None and each.__module__.startswith("gpusched_env.")]
    return found


def named_by(function: Any) -> Iterator[Any]:
    yield from (cell.cell_contents for cell in function.__closure__ or ())
    codes = [function.__code__]
    for code in codes:
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        for name in code.co_names:
            value = function.__globals__.get(name)
            yield value
            if isinstance(value, ModuleType):
                yield from (getattr(value, attribute, None) for attribute in code.co_names)


def meant(value: Any) -> Any:
    """The function that compiled code calls under what Python calls so; ``None``: it calls nothing."""
    if isinstance(value, FunctionType):
        kind = cpu_target.typing_context._globals.get(value)
        return kind.dispatcher.py_func if isinstance(kind, types.Dispatcher) else value
    return getattr(value, "py_func", None) or getattr(value, "_defn", None)


def test_what_was_compiled_is_known_as_kept() -> None:
    """Also in the process that compiled it: nobody starts another one for nothing."""
    compile_units()
    assert is_built(UNITS)


def never_compiled() -> int:
    return 0


def test_what_was_never_compiled_is_not_kept() -> None:
    assert not is_built([callback_unit(never_compiled, never_compiled)])
