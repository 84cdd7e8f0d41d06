"""What a user installs: the wheel's contents, a fresh environment, light imports, declared dependencies."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

import gpusched_env
from gpusched_env.data import recorded_names
from gpusched_env.hardware.specs import gpu_names
from gpusched_env.scenarios.scenario import scenario_names

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gpusched_env"
LINKED = ("agents", "baselines", "experiments")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

DISTRIBUTION_OF = {
    "cuda": "cuda-core",
    "cupy": "cupy-cuda13x",
    "nvmath": "nvmath-python",
    "PIL": "pillow",
    "sb3_contrib": "sb3-contrib",
    "sqlalchemy": "SQLAlchemy",
    "stable_baselines3": "stable-baselines3",
    "yaml": "PyYAML",
}
"""Distributions whose import name differs; every other one is imported by its own name."""

NOT_IMPORTED = {"ipykernel"}
"""Distributions of extras that are used without an import: the notebooks' kernel."""


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shipped_files() -> Iterator[tuple[str, Path]]:
    """(path in the wheel, file) of everything that belongs to the package in this checkout."""
    folders = [(PurePosixPath("gpusched_env"), PACKAGE)]
    folders += [(PurePosixPath("gpusched_env") / name, ROOT / name) for name in LINKED]
    for prefix, folder in folders:
        for path in folder.rglob("*"):
            inner = path.relative_to(folder)
            linked = folder == PACKAGE and inner.parts[0] in LINKED
            if path.is_file() and not linked and "__pycache__" not in inner.parts:
                yield str(prefix / inner.as_posix()), path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built the long way round: source distribution, unpacked, wheel."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("gpusched_env", *LINKED):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    build = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-c", build, "build_sdist", out, cwd=source)
    unpacked = tmp_path_factory.mktemp("unpacked")
    (archive,) = out.glob("*.tar.gz")
    # Python 3.11.0 to 3.11.3 know no filters.
    shutil.unpack_archive(archive, unpacked, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (folder,) = unpacked.iterdir()
    run(sys.executable, "-c", build, "build_wheel", out, cwd=folder)
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_under_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {info.filename: info for info in archive.infolist()}
        tops = {PurePosixPath(name).parts[0] for name in packed}
        assert tops == {"gpusched_env", f"gpusched_env-{gpusched_env.__version__}.dist-info"}
        expected = dict(shipped_files())
        assert "gpusched_env/py.typed" in expected
        assert any(name.startswith("gpusched_env/baselines/") for name in expected)
        modules = {name for name in packed if name.startswith("gpusched_env/")}
        assert modules == set(expected)
        different = [name for name, path in expected.items() if archive.read(name) != path.read_bytes()]
        assert not different


USE_EVERYTHING = """
import importlib, importlib.util, pkgutil, sys
from pathlib import Path

import gpusched_env
home = Path(gpusched_env.__file__).parent
assert home.is_relative_to(sys.prefix), home
assert not any(path.is_symlink() for path in home.rglob("*"))
for name in ("agents", "baselines", "experiments"):
    assert importlib.util.find_spec(name) is None, name
    importlib.import_module(f"gpusched_env.{name}")
for module in pkgutil.walk_packages([str(home)], "gpusched_env."):
    importlib.import_module(module.name)

from gpusched_env.data import read_recorded, recorded_names
from gpusched_env.hardware.specs import gpu_names, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, scenario_names

for name in gpu_names():
    load_gpu(name)
for name in recorded_names():
    read_recorded(name)
for name in scenario_names():
    build_problem(load_scenario(name))
print(*gpu_names(), *recorded_names(), *scenario_names())
"""


def test_a_fresh_environment_runs_what_the_wheel_brings(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # The dependencies come from this environment. A path line does not run the .pth files of that
    # folder, so an editable install of the checkout stays out of sight.
    (site_packages,) = home.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    loaded = run(python, "-c", USE_EVERYTHING, cwd=tmp_path).split()
    assert loaded == [*gpu_names(), *recorded_names(), *scenario_names()]
    listed = run(home / "bin" / "gpusched", "scenarios", cwd=tmp_path)
    assert "InferenceBesideTraining" in listed


def test_importing_the_package_is_light() -> None:
    code = "import sys, gpusched_env; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(run(sys.executable, "-c", code, cwd=ROOT).split())
    assert "gpusched_env" in loaded
    heavy = {"cupy", "matplotlib", "numba", "pandas", "plotly", "pyarrow", "ray", "stable_baselines3", "torch"}
    assert loaded.isdisjoint(heavy)


def test_simulating_needs_no_extra() -> None:
    extra = (
        "jinja2",
        "loky",
        "pandas",
        "perfetto",
        "plotly",
        "pyarrow",
        "rich",
        "scipy",
        "typer",
        "torch",
        "matplotlib",
    )
    code = f"""
import sys
sys.modules.update(dict.fromkeys({extra}))
import gymnasium
import gpusched_env
print(repr(gpusched_env.run_episode("Toy", "sjf", device="reference")), gpusched_env.make_scheduler("mps(share=50)"))
env = gymnasium.make("gpusched_env:gpusched/Toy-v0", device="reference")
print(env.reset(seed=0)[0], env.unwrapped.episode())
"""
    assert "<Episode of Toy, seed 0" in run(sys.executable, "-c", code, cwd=ROOT)


def requirement_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", text, maxsplit=1)[0] for text in requirements}


def imported_distributions() -> dict[str, set[str]]:
    """Third-party distributions that the package imports, each with the files that do."""
    found: dict[str, set[str]] = {}
    for name, path in shipped_files():
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            else:
                continue
            for module in modules:
                top = module.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "gpusched_env":
                    found.setdefault(DISTRIBUTION_OF.get(top, top), set()).add(name)
    return found


def test_dependencies_are_declared_and_used() -> None:
    extras = PROJECT["optional-dependencies"]
    core = requirement_names(PROJECT["dependencies"])
    optional = requirement_names([text for name, extra in extras.items() if name != "dev" for text in extra])
    imported = imported_distributions()
    undeclared = {name: files for name, files in imported.items() if name not in core | optional}
    assert not undeclared
    assert core <= imported.keys()


def test_constraints_pin_every_direct_requirement() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pinned = {name.lower().replace("_", "-") for name in pins}
    optional = [text for extra in PROJECT["optional-dependencies"].values() for text in extra]
    wanted = requirement_names(PROJECT["dependencies"] + optional)
    missing = {name for name in wanted if name.lower().replace("_", "-") not in pinned} - {"gpusched-env"}
    assert not missing
    assert pins["torch"] == "2.13.0"
