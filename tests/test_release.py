"""What a release states is stated alike everywhere, and nothing that a stranger needs first is missing."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import gpusched_env

ROOT = Path(__file__).parents[1]
VERSION = gpusched_env.__version__
NOTEBOOKS = sorted((ROOT / "experiments" / "notebooks").glob("*.ipynb"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_and_the_changelog_have_the_version_and_its_day() -> None:
    cited = yaml.safe_load(text("CITATION.cff"))
    newest = re.search(r"^## (\S+) \((\S+)\)$", text("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert (str(cited["version"]), str(cited["date-released"])) == newest.groups()
    assert newest[1] == VERSION


def test_fragments_are_of_kinds_that_the_changelog_has() -> None:
    settings = tomllib.loads(text("pyproject.toml"))["tool"]["towncrier"]
    kinds = {kind["directory"] for kind in settings["type"]}
    fragments = [path.name for path in (ROOT / settings["directory"]).iterdir() if path.name not in settings["ignore"]]
    assert [name for name in fragments if not re.fullmatch(rf"[\w+-]+\.({'|'.join(kinds)})\.md", name)] == []
    assert kinds == set(re.findall(r"^\| `(\w+)` \|", text("changes/README.md"), re.MULTILINE))


def test_what_goes_has_a_release_and_a_date() -> None:
    table = text("STABILITY.md").partition("## What goes")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][2:]
    assert rows
    assert all(re.fullmatch(r" 0\.\d+\.0 ", row[2]) and re.fullmatch(r" 20\d\d-\d\d-\d\d ", row[3]) for row in rows)


def test_the_code_host_runs_what_everybody_runs() -> None:
    workflow = yaml.safe_load(text(".github/workflows/ci.yml"))
    runs = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in runs
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    hooks = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    assert {hook["entry"].split()[0].rpartition("/")[2] for hook in hooks} == {"ruff", "mypy", "lint-imports"}
    assert "install-dev" in json.loads(text(".devcontainer/devcontainer.json"))["postCreateCommand"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_something(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert path.stem == "config" or any(part.get("validations", {}).get("required") for part in form["body"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_installs_what_it_needs_first(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    first = "".join(next(cell["source"] for cell in cells if cell["cell_type"] == "code"))
    assert 'find_spec("gpusched_env") is None' in first
    assert "%pip install" in first


def test_no_address_is_made_up() -> None:
    """Until there is one, what would need the project's address says where it goes."""
    assert "urls" not in tomllib.loads(text("pyproject.toml"))["project"]
    assert "repository-code" not in yaml.safe_load(text("CITATION.cff"))
    assert "**Addresses.**" in text("CONTRIBUTING.md")
