"""The site shows notebooks with their pictures: those that were executed, and of the same cells."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "docs" / "site" / "pictures.py"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    """The module, which lies outside of the package."""
    spec = importlib.util.spec_from_file_location("site_pictures", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def notebook(path: Path, source: str | list[str], *outputs: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": [{"source": source, "outputs": outputs}]}))
    return path


def test_executed_notebooks_are_shown_unless_their_cells_have_changed(pictures: ModuleType, tmp_path: Path) -> None:
    plain = notebook(tmp_path / "plain" / "one.ipynb", ["a = 1\n", "a"])
    executed = tmp_path / "executed"
    assert pictures.shown(plain, executed) == plain
    copy = notebook(executed / "one.ipynb", "a = 1\na", "1")
    assert pictures.shown(plain, executed) == copy
    notebook(plain, "a = 2\na")
    assert pictures.shown(plain, executed) == plain


def test_notebooks_without_a_picture_are_found(pictures: ModuleType, tmp_path: Path) -> None:
    for name, text in (("one", '<img src="../../_images/a.png" />'), ("two", '<img src="logo.png" />')):
        notebook(tmp_path / f"{name}.ipynb", "")
        (tmp_path / f"{name}.html").write_text(text)
    assert pictures.bare(tmp_path, tmp_path) == ["two"]
