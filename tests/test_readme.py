"""Everything the README tells a reader to type works: its Python blocks and its ``gpusched`` commands."""

from __future__ import annotations

import gzip
import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from tests.agents.made_up import made_up, written
from tests.conftest import Run

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text()
SCHEDULER_FILE = "my_scheduler.py"
"""The README names the block of a scheduler of one's own so, and then compares it from the command line."""


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


PAGES = [TEXT, *((ROOT / "docs" / name).read_text() for name in ("comparing.md", "load-sweeps.md"))]
PYTHON_BLOCKS = [block for page in PAGES for block in blocks("python", page)]
SCHEDULER = next(block for block in PYTHON_BLOCKS if "class OneAhead" in block)
COMMANDS = [
    line.removeprefix(".venv/bin/").partition("  #")[0].strip()
    for block in blocks("sh")
    for line in block.splitlines()
    if line.startswith(".venv/bin/")
]


def write_trace(path: Path) -> None:
    """A profiler export of one iteration with two kernels, as small as it can be."""

    def event(category: str, name: str, start_us: float, duration_us: float, **args: object) -> dict[str, object]:
        return {"ph": "X", "cat": category, "name": name, "ts": start_us, "dur": duration_us, "args": args}

    shape = {"registers per thread": 32, "shared memory": 0, "grid": [264, 1, 1], "block": [128, 1, 1]}
    events = [event("user_annotation", "ProfilerStep#1", 0.0, 120.0)]
    for correlation, launched_us in enumerate((10.0, 50.0), start=1):
        where = {"device": 0, "stream": 7, "correlation": correlation}
        events.append(event("cuda_runtime", "cudaLaunchKernel", launched_us, 5.0, correlation=correlation))
        events.append(event("kernel", "vectorized_elementwise_kernel", launched_us + 8.0, 20.0, **where, **shape))
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3"}
    path.write_bytes(gzip.compress(json.dumps({"deviceProperties": [device], "traceEvents": events}).encode()))


@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_python_blocks_run(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / SCHEDULER_FILE
    script.write_text(block)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_own_scheduler_takes_about_20_lines() -> None:
    source = SCHEDULER
    lines = source[source.index("class ") : source.index("\nif __name__")].strip().splitlines()
    assert len(lines) <= 20


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str, gpusched: Run, tmp_path: Path) -> None:
    (tmp_path / SCHEDULER_FILE).write_text(SCHEDULER)
    write_trace(tmp_path / "trace.json.gz")
    written(made_up("Toy"), tmp_path / "toy_ppo.npz")
    program, *arguments = shlex.split(command)
    assert program == "gpusched"
    assert gpusched(*arguments) == 0


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        if not target.startswith(("http://", "https://"))
    ]
    assert (ROOT / "README.md", "docs/README.md") in links
    assert [
        f"{page.relative_to(ROOT)}: {target}" for page, target in links if not (page.parent / target).exists()
    ] == []


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()
