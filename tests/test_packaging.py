"""What a user installs: the wheel's contents, a fresh environment, light imports, declared dependencies."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gpusched_env
from gpusched_env.data import recorded_names
from gpusched_env.hardware.specs import gpu_names
from gpusched_env.scenarios.scenario import scenario_names
from tests.experiments.test_commands import MISTAKES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gpusched_env"
LINKED = ("agents", "baselines", "experiments")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
NOT_IN_THE_WHEEL = SETTINGS["tool"]["setuptools"]["exclude-package-data"]["*"]
WHEEL_BYTES = 7_000_000
DIST_INFO = f"gpusched_env-{gpusched_env.__version__}.dist-info"
BESIDE = ("pyproject.toml", "MANIFEST.in", "LICENSE", "Makefile", "constraints.txt", "README.md", "CONTRIBUTING.md")
"""Files beside the package."""

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
    """A wheel built the long way round: source distribution, which lies beside it, unpacked, wheel."""
    source = tmp_path_factory.mktemp("source")
    for name in BESIDE:
        shutil.copy(ROOT / name, source)
    for name in ("gpusched_env", *LINKED, "docs", "tests"):
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
        assert tops == {"gpusched_env", DIST_INFO}
        expected = dict(shipped_files())
        assert "gpusched_env/py.typed" in expected
        assert any(name.startswith("gpusched_env/baselines/") for name in expected)
        modules = {name for name in packed if name.startswith("gpusched_env/")}
        kept_back = {name for name in expected if any(PurePosixPath(name).match(glob) for glob in NOT_IN_THE_WHEEL)}
        assert modules == set(expected) - kept_back
        different = [name for name in modules if archive.read(name) != expected[name].read_bytes()]
        assert not different
        Metadata.from_email(archive.read(f"{DIST_INFO}/METADATA"), validate=True)
    assert kept_back
    assert wheel.stat().st_size <= WHEEL_BYTES


def test_the_source_distribution_has_what_tests_and_pages_need(wheel: Path) -> None:
    (source,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert packed.issuperset([*BESIDE, "tests/conftest.py", "docs/README.md"])
    assert packed.issuperset(dict(shipped_files()))


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
    listed = run(home / "bin" / "gpusched", "list", "scenarios", cwd=tmp_path)
    assert "InferenceBesideTraining" in listed


def needed(requirements: Iterable[str], seen: set[str]) -> set[str]:
    """Names of distributions that these requirements bring, those behind them too."""
    for text in requirements:
        asked = Requirement(text)
        extras = [{"extra": extra} for extra in ("", *asked.extras)]
        name = canonicalize_name(asked.name)
        if name not in seen and (asked.marker is None or any(asked.marker.evaluate(extra) for extra in extras)):
            seen.add(name)
            needed(metadata.requires(name) or (), seen)
    return seen


def environment_with(wheel: Path, home: Path, requirements: list[str]) -> Path:
    """The interpreter of an environment with the wheel, these distributions of ours, and what they need."""
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=home)
    (site_packages,) = home.glob("lib/python*/site-packages")
    for name in needed(requirements, set()):
        for file in metadata.files(name) or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site_packages / top).exists():
                (site_packages / top).symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / top)
    return python


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and what it cannot do without."""
    return environment_with(wheel, tmp_path_factory.mktemp("bare"), PROJECT["dependencies"])


@pytest.fixture(scope="module")
def untrained(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the extra ``experiments`` alone."""
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["experiments"]]
    return environment_with(wheel, tmp_path_factory.mktemp("untrained"), asked)


TOY = """
import gymnasium, gpusched_env, importlib.util
assert not any(map(importlib.util.find_spec, ("loky", "pandas", "plotly", "rich", "torch", "typer")))
env = gymnasium.make("gpusched_env:gpusched/Toy-v0", device="reference")
_, info = env.reset(seed=0)
ended = False
while not ended:
    _, _, ended, _, info = env.step(int(info["action_mask"].nonzero()[0][-1]))
print(gpusched_env.run_episode("Toy", "sjf", device="reference"))
"""


@pytest.mark.long
def test_toy_runs_with_the_wheel_alone(bare: Path, tmp_path: Path) -> None:
    assert "Episode of Toy, seed 0" in run(bare, "-c", TOY, cwd=tmp_path)


EPISODE = "gpusched_env.run_episode('Toy', 'sjf', device='reference')"
LACKS = {
    "gpusched_env.compare('Toy')": ("gpusched_env.compare", "experiments"),
    "gpusched_env.evaluate('learned', 'Toy')": ("gpusched_env.evaluate", "experiments"),
    "gpusched_env.rank(['Toy'])": ("gpusched_env.rank", "experiments"),
    "gpusched_env.load_sweep('x')": ("gpusched_env.load_sweep", "experiments"),
    "gpusched_env.load_comparison('x')": ("gpusched_env.load_comparison", "experiments"),
    f"{EPISODE}.plot.timeline()": ("a chart", "experiments"),
    f"{EPISODE}.to_frame()": ("a data frame", "experiments"),
    "gpusched_env.make_device('cuda')": ("a real GPU", "gpu"),
}
"""What cannot be done without an extra, what the sentence is about, and the extra."""


def advice(wheel: Path, extra: str) -> str:
    return f"pip install 'gpusched-env[{extra}] @ {wheel.as_uri()}'"


@pytest.mark.long
def test_a_missing_extra_is_one_sentence_that_says_how_to_install_it(bare: Path, wheel: Path, tmp_path: Path) -> None:
    code = f"""
import gpusched_env
assert hasattr(gpusched_env, "compare")
from gpusched_env import compare
for each in {list(LACKS)!r}:
    try:
        eval(each)
    except gpusched_env.errors.InputError as error:
        print(error)
"""
    said = run(bare, "-c", code, cwd=tmp_path).splitlines()
    assert len(said) == len(LACKS)
    for line, (what, extra) in zip(said, LACKS.values(), strict=True):
        assert line.startswith(f"{what} needs ")
        assert line.endswith(f": {advice(wheel, extra)}")


MAIN = """
import contextlib, io, json, shlex, sys
from gpusched_env.experiments.cli import main
for line in json.loads(sys.argv[1]):
    sys.argv = ["gpusched", *shlex.split(line)]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    print(json.dumps([status, said.getvalue()]))
"""


@pytest.mark.long
def test_the_command_line_says_what_it_lacks(bare: Path, untrained: Path, wheel: Path, tmp_path: Path) -> None:
    done = subprocess.run([bare.parent / "gpusched", "list"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        f"error: the command line needs typer: {advice(wheel, 'experiments')}\n",
    )
    asked = {
        "train Toy --out x": ("gpusched train", "train"),
        "tune ServingPoisson --json x.json": ("gpusched tune", "sweep"),
        "lab search Toy --out x": ("gpusched lab search", "sweep"),
        "lab fleet --days 0.02 --gpus 4 --shards 2 --ray-address local": ("--ray-address", "ray"),
        "lab record x --sets kernels": ("recording", "gpu"),
        "lab validate --live Toy": ("a real GPU", "gpu"),
    }
    printed = run(untrained, "-c", MAIN, json.dumps(list(asked)), cwd=tmp_path).splitlines()
    for line, (what, extra) in zip(printed, asked.values(), strict=True):
        status, said = json.loads(line)
        assert (status, said.count("\n")) == (2, 1), said
        assert said.startswith(f"error: {what} needs ")
        assert said.endswith(f": {advice(wheel, extra)}\n")


@pytest.mark.long
def test_typical_mistakes_are_one_sentence_without_the_other_extras(untrained: Path, tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("text")
    printed = run(untrained, "-c", MAIN, json.dumps(list(MISTAKES)), cwd=tmp_path).splitlines()
    for mistake, line in zip(MISTAKES, printed, strict=True):
        status, said = json.loads(line)
        assert (status, said.count("\n")) == (2, 1), (mistake, said)
        assert said.startswith("error: ")


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
