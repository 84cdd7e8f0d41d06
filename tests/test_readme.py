"""Everything the README tells a reader to type works: its Python blocks and its ``gpusched`` commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text()
SCHEDULER_FILE = "my_scheduler.py"
"""The README names its first Python block so and then compares it from the command line."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)


PYTHON_BLOCKS = blocks("python")
COMMANDS = [
    line.removeprefix(".venv/bin/").partition("  #")[0].strip()
    for block in blocks("sh")
    for line in block.splitlines()
    if line.startswith(".venv/bin/")
]


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_python_blocks_run(block: str, tmp_path: Path) -> None:
    script = tmp_path / SCHEDULER_FILE
    script.write_text(block)
    printed = run(sys.executable, str(script), cwd=tmp_path)
    assert printed.strip()


def test_the_own_scheduler_takes_about_20_lines() -> None:
    source = PYTHON_BLOCKS[0]
    lines = source[source.index("class ") : source.index("\nif __name__")].strip().splitlines()
    assert len(lines) <= 20


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, tmp_path: Path) -> None:
    (tmp_path / SCHEDULER_FILE).write_text(PYTHON_BLOCKS[0])
    name, *arguments = shlex.split(command)
    run(str(Path(sys.executable).with_name(name)), *arguments, cwd=tmp_path)


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    dead = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http://", "https://")) and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert not dead
