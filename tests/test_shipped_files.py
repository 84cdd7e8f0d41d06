"""Files that come with the project say nothing of the machine that they were made on, and have their licences."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = sorted(
    path
    for folder in ("gpusched_env/data", "agents/trained", "experiments/notebooks", "docs/results", "docs/examples")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix in {".gz", ".json", ".csv", ".yaml", ".ipynb", ".patch"}
)
HOME = re.compile(rb"/(?:root|home|mnt|Users|tmp)/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


def test_there_are_files_to_look_at() -> None:
    assert len(DATA) > 50


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.name)
def test_no_file_names_a_folder_of_the_machine_it_was_made_on(path: Path) -> None:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found = HOME.search(content)
    assert found is None, found


@pytest.mark.parametrize("font", sorted(ROOT.glob("gpusched_env/**/*.ttf")), ids=lambda path: path.name)
def test_the_licence_of_a_font_lies_beside_it(font: Path) -> None:
    licence = font.with_name(f"{font.stem}-LICENSE.txt")
    assert "Permission is hereby granted" in licence.read_text(encoding="utf-8")
    # What a wheel and a source distribution take along.
    assert licence.relative_to(ROOT).as_posix() in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
