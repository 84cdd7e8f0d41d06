"""The page on extending it is true: its examples run, on both devices alike, and its tables name what is there."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpusched_env.experiments.reference import interface

DOCS = Path(__file__).resolve().parents[1] / "docs"
TEXT = (DOCS / "extending.md").read_text(encoding="utf-8")
INTERFACE = interface.document()
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", flags=re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PLACE = re.compile(r"^\|.*\]\(([^)#]+)\).*\| `([^`]+)` \|$", flags=re.MULTILINE)
PATCH = DOCS / "examples" / "hold.patch"
DEVICES = ("reference", "compiled")

EXAMPLES = [
    pytest.param(block, id=f"{title}-{number}")
    for title, text in SECTION.findall(TEXT)
    for number, block in enumerate(BLOCK.findall(text))
]
PLACES = PLACE.findall(TEXT + (DOCS / "where.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("block", EXAMPLES)
def test_examples_run_alike_on_both_devices(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "example.py"
    script.write_text(block, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert printed
    if 'in ("reference", "compiled")' in block:
        said = {device: [line.replace(device, "") for line in printed if device in line] for device in DEVICES}
        assert said["reference"]
        assert said["reference"] == said["compiled"]


@pytest.mark.parametrize(("path", "what"), PLACES)
def test_what_a_table_names_is_in_the_file(path: str, what: str) -> None:
    assert what in (DOCS / path).read_text(encoding="utf-8")


def test_the_first_table_counts_the_places() -> None:
    sections = dict(SECTION.findall(TEXT))
    row = r"^\| \[a command\].*\| (\d+), and (\d+) where it reaches further; (\d+) more about launches \|$"
    (command,) = re.findall(row, TEXT, flags=re.MULTILINE)
    assert len(PLACE.findall(sections["A command"])) == sum(map(int, command))
    (law,) = re.findall(r"^\| \[a law of the hardware\].*\| (\d+) \|$", TEXT, flags=re.MULTILINE)
    assert len(PLACE.findall(sections["A law of the hardware"])) == int(law)


def test_the_new_command_fits_the_code_and_its_files_are_those_of_the_table() -> None:
    subprocess.run(["git", "apply", "--check", str(PATCH)], cwd=DOCS.parent, check=True)
    changed = re.findall(r"^\+\+\+ b/(.+)$", PATCH.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = dict(SECTION.findall(TEXT))["A command"]
    # A new file is named, and linked to the one beside it that is its model.
    steps = re.findall(r"^\| \d+[^|]*\| \[([^]]+)\]\(\.\./([^)]+)\)", section, flags=re.MULTILINE)
    files = [str(Path(link).with_name(Path(name.replace("\\", "")).name)) for name, link in steps]
    assert sorted(files) == sorted(changed)
    assert len(files) <= 9


@pytest.mark.slow
def test_the_new_command_is_one_on_both_devices(tmp_path: Path) -> None:
    """Minutes: the changed device is compiled."""
    copy = tmp_path / "copy"
    for folder in ("agents", "baselines", "docs", "experiments", "gpusched_env"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(DOCS.parent / folder, copy / folder, symlinks=True, ignore=skipped)
    subprocess.run(["git", "apply", str(PATCH)], cwd=copy, check=True)

    def run(*arguments: str) -> str:
        env = {**os.environ, "PYTHONPATH": str(copy)}
        return subprocess.run(
            [sys.executable, *arguments], cwd=copy, env=env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    said = run("docs/examples/hold.py").splitlines()
    assert said == [f"{device} {{'batch': 0.0, 'urgent': 10.0}}" for device in DEVICES]
    assert "hold commands" in run(
        "-m", "gpusched_env.experiments.cli", "lab", "fuzz", "--episodes", "30", "--seed", "1"
    )


def test_the_example_of_the_interface_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = BLOCK.findall(INTERFACE)
    script = tmp_path / "first.py"
    script.write_text(block, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    assert "First" in capsys.readouterr().out
