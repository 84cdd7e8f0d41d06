"""The page on extending it is true: its examples run, on both devices alike, and its tables name what is there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
TEXT = (DOCS / "extending.md").read_text(encoding="utf-8")
INTERFACE = (DOCS / "interface.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", flags=re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PLACE = re.compile(r"^\|.*\]\(([^)#]+)\).*\| `([^`]+)` \|$", flags=re.MULTILINE)
DEVICES = ("reference", "compiled")

EXAMPLES = [
    pytest.param(block, id=f"{title}-{number}")
    for title, text in SECTION.findall(TEXT)
    for number, block in enumerate(BLOCK.findall(text))
]
PLACES = PLACE.findall(TEXT)


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
    (command,) = re.findall(r"^\| \[a command\].*\| (\d+), and (\d+) for", TEXT, flags=re.MULTILINE)
    assert len(PLACE.findall(sections["A command"])) == sum(map(int, command))
    (law,) = re.findall(r"^\| \[a law of the hardware\].*\| (\d+) \|$", TEXT, flags=re.MULTILINE)
    assert len(PLACE.findall(sections["A law of the hardware"])) == int(law)


def test_the_example_of_the_interface_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = BLOCK.findall(INTERFACE)
    script = tmp_path / "first.py"
    script.write_text(block, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    assert "First" in capsys.readouterr().out
