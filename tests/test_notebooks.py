"""Notebooks run from the first cell to the last, and none prints much."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "experiments" / "notebooks").glob("*.ipynb"))
EXECUTED = ROOT / "build" / "notebooks"
"""The site shows them from here."""
LIMIT = 500_000
"""Characters of an output."""


def test_all_are_there() -> None:
    assert len(NOTEBOOKS) == 6


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    for file in path.parent.glob("*.gz"):
        shutil.copy(file, tmp_path)
    client = NotebookClient(notebook, kernel_name="python3", timeout=None, resources={"metadata": {"path": tmp_path}})
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    charts = [output.data for output in outputs if "application/vnd.plotly.v1+json" in output.get("data", {})]
    assert all("image/png" in chart for chart in charts), "charts show where no script runs"
    assert charts, "each shows at least one"
    complaints = [str(output.get("text", "")) for output in outputs if "ERROR" in str(output.get("text", ""))]
    assert not complaints, "a magic command that fails raises nothing"
    sizes = [len(str(output)) for output in outputs]
    assert max(sizes) < LIMIT
    EXECUTED.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, EXECUTED / path.name)
