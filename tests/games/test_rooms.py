"""A game is a room and a line: without them the rest of the project works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpusched_env.scenarios.games import GAMES

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "docs", "*.egg-info", ".*_cache")
ROOMS = {name: place.split(".")[2] for name, place in GAMES.items()}
"""Folders by name; a folder may have several games."""
EVERYTHING = """
import importlib, pkgutil, sys
import gpusched_env
for module in pkgutil.walk_packages(gpusched_env.__path__, "gpusched_env."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:  # A library that is not installed.
            if (error.name or "").startswith("gpusched_env"):
                raise
"""
TESTS = ("tests/scenarios", "tests/hardware/test_laws.py", "tests/envs/test_registration.py", "tests/test_closure.py")


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted(set(ROOMS.values())))
def test_the_rest_works_without_a_room(folder: str, tmp_path: Path) -> None:
    """A folder, the lines of its games and their tests are deleted in a copy."""
    names = [name for name, each in ROOMS.items() if each == folder]
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=LEFT_OUT)
    (tree / "docs").symlink_to(ROOT / "docs")
    shutil.rmtree(tree / "gpusched_env" / "games" / folder)
    shutil.rmtree(tree / "tests" / "games" / folder)
    registry = tree / "gpusched_env" / "scenarios" / "games.py"
    text, lines = re.subn(rf'^    "({"|".join(names)})": .*\n', "", registry.read_text(), flags=re.MULTILINE)
    assert lines == len(names)
    registry.write_text(text)

    run(tree, "-W", "ignore", "-c", EVERYTHING)
    assert games_with_schedulers(tree) == games_with_schedulers(ROOT) - set(names)
    compared = ("compare", "Toy", "--schedulers", "sjf,pass-through", "--seeds", "1", "--workers", "1")
    assert "sjf" in run(tree, "-m", "gpusched_env.experiments.cli", *compared)
    run(tree, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not slow and not long", *TESTS)


def games_with_schedulers(tree: Path) -> set[str]:
    """Games whose own schedulers a tree lists; a game may have none but those of kernels."""
    known = run(tree, "-m", "gpusched_env.experiments.cli", "list", "schedulers")
    return {name for name in ROOMS if f"({name})" in known}


def run(tree: Path, *command: str) -> str:
    """What Python prints in a tree, which is where its modules are."""
    there = {**os.environ, "PYTHONPATH": str(tree)}
    ran = subprocess.run([sys.executable, *command], cwd=tree, env=there, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout
