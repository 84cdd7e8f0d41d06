"""Pages that are written from docstrings: up to date, and complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpusched_env.baselines.fleet.registry import DISPATCHERS
from gpusched_env.baselines.registry import scheduler_names
from gpusched_env.experiments.reference import schedulers
from gpusched_env.experiments.reference.__main__ import PAGES
from gpusched_env.experiments.reference.docstrings import attribute_docstrings, markdown
from gpusched_env.experiments.reference.interface import TABLES, source, unit
from gpusched_env.games.child_launches.baselines.registry import LAUNCH_SCHEDULERS
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_committed_pages_are_those_of_the_code(page: str) -> None:
    written = (DOCS / page).read_text(encoding="utf-8")
    assert written == PAGES[page](DOCS), f"docs/{page} is not what make reference writes"


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


def test_no_page_shows_a_role_of_a_docstring() -> None:
    shown = [
        path.name for path in DOCS.glob("*.md") if re.search(r":(mod|class|func|meth|attr|data):`", path.read_text())
    ]
    assert shown == []
