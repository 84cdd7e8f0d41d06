"""Pages that are written from docstrings: up to date, and complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpusched_env.baselines.registry import scheduler_names
from gpusched_env.envs.datasheet import other_games
from gpusched_env.experiments.reference import environments, leaderboard, schedulers
from gpusched_env.experiments.reference.__main__ import PAGES
from gpusched_env.experiments.reference.docstrings import attribute_docstrings, markdown
from gpusched_env.experiments.reference.interface import TABLES, source, unit
from gpusched_env.games.child_launches.baselines.registry import LAUNCH_SCHEDULERS
from gpusched_env.games.fleet.baselines.cluster.registry import PLACEMENT_SCHEDULERS
from gpusched_env.games.fleet.baselines.registry import DISPATCHERS
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS
from gpusched_env.scenarios.scenario import scenario_names

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return {name: document() for name, document in PAGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_a_few_lines_stand_in_for_a_page_of_the_site_and_say_how_it_is_made(name: str, made: dict[str, str]) -> None:
    there = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert there.partition("\n")[0] == made[name].partition("\n")[0], "its title"
    assert "make docs" in there
    assert f"build/reference/{name}.md" in there
    assert len(there.split()) < 100


def test_links_lead_to_headings_of_the_pages(made: dict[str, str]) -> None:
    """What committed pages and these link to of each other."""
    texts = [
        *made.values(),
        *(path.read_text(encoding="utf-8") for path in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]),
    ]
    links = {link for text in texts for link in re.findall(rf"\]\((?:docs/)?({'|'.join(made)})\.md#([^)]+)\)", text)}
    headings = {
        (name, re.sub(r"[^\w -]", "", title).lower().replace(" ", "-"))
        for name, text in made.items()
        for title in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    }
    assert {("scenarios", "a-file-of-your-own"), ("interface", "commands")} <= links
    assert links - headings == set()


def test_every_environment_is_in_the_table_with_its_film_and_headroom(made: dict[str, str]) -> None:
    rows = {str(row[0]).split("]")[0].strip("["): [str(cell) for cell in row] for row in environments.glance().rows}
    assert list(rows) == [*scenario_names(), *other_games()]
    assert all(f"(#{environments.anchor(name)}) ![" in row[0] for name, row in rows.items())
    assert rows["MultiTenantSaturated"][1].startswith("-12")
    assert rows["ServingOverload"][-1] == "v1, v0, another problem"
    assert environments.glance().markdown() in made["environments"]


def test_the_leaderboard_is_that_of_the_result_files() -> None:
    for name, text in leaderboard.pages(DOCS).items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"make results writes docs/{name}"


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_a_view_has_a_meaning_a_unit_and_a_source(table: str) -> None:
    columns = TABLES[table]
    assert list(attribute_docstrings(columns)) == [column.name for column in columns]
    assert all(unit(column) and source(table, column) for column in columns)


def test_every_scheduler_and_option_is_on_the_page() -> None:
    entries = [entry for _, listed in schedulers.entries() for entry in listed]
    assert [entry.name for entry in entries] == [
        *scheduler_names(),
        *LAUNCH_SCHEDULERS.names(),
        *TASK_SCHEDULERS.names(),
        *DISPATCHERS.names(),
        *PLACEMENT_SCHEDULERS.names(),
    ]
    silent = [
        f"{entry.name}({name})"
        for entry in entries
        for name in entry.options
        if not entry.said.get(name)
    ]  # fmt: skip
    assert silent == []


def test_tables_of_docstrings_become_pipe_tables() -> None:
    docstring = """Rules of :class:`~a.Thing`:

======== ===============
Rule     Here
======== ===============
First of ``all|none``,
all      then ``long_``
         ``name``
... and  :data:`.THIS`
======== ===============

Done."""
    assert markdown(docstring) == "\n".join(
        [
            "Rules of `a.Thing`:",
            "",
            "| Rule | Here |",
            "|---|---|",
            "| First of all | `all\\|none`, then `long_name` |",
            "| ... and | `THIS` |",
            "",
            "Done.",
        ]
    )


def test_no_page_shows_a_role_of_a_docstring(made: dict[str, str]) -> None:
    texts = {**{path.name: path.read_text() for path in DOCS.glob("*.md")}, **made}
    shown = [name for name, text in texts.items() if re.search(r":(mod|class|func|meth|attr|data):`", text)]
    assert shown == []
