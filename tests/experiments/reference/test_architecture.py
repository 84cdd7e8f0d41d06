"""The page of the architecture is drawn from the code, and the pages beside it name what is there."""

from __future__ import annotations

import re

from gpusched_env.experiments.reference import architecture
from gpusched_env.experiments.reference.architecture import ROOT

MINUTES, WORDS_A_MINUTE = 15, 130
"""How fast a page is read that is to be understood."""


def page(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_pages_and_picture_are_those_of_the_code() -> None:
    for path, text in architecture.files().items():
        assert path.read_text(encoding="utf-8") == text, f"make architecture writes {path.name}"


def test_arrows_go_downwards_and_rooms_have_docstrings() -> None:
    rows = architecture.layers()
    level = {room: number for number, row in enumerate(rows) for room in row}
    found = architecture.imports()
    assert [(a, b) for a, others in found.items() for b in others if level[a] >= level[b]] == []
    assert "scheduling" in found["devices"]
    assert all(architecture.about(room) for room in level)


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    assert architecture.direct({"a": {"b", "c", "d"}, "b": {"c"}, "c": set(), "d": set()}) == {
        "a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set(),
    }  # fmt: skip


def test_every_path_that_the_page_names_is_there() -> None:
    text = page("ARCHITECTURE.md")
    places = (
        ROOT,
        ROOT / "gpusched_env",
        ROOT / "gpusched_env/devices/reference",
        ROOT / "gpusched_env/devices/compiled",
    )
    named = {name for name in re.findall(r"`([\w/]+(?:\.\w+|/))`", text) if not name.startswith("view.")}
    missing = {name for name in named if not any((place / name).exists() for place in (*places, ROOT / "baselines"))}
    assert missing - {"__init__.py"} == set()


def test_it_is_read_in_fifteen_minutes() -> None:
    assert len(page("ARCHITECTURE.md").split()) <= MINUTES * WORDS_A_MINUTE


def test_at_least_twenty_four_questions_are_answered() -> None:
    rows = [row for row in page("docs/where.md").splitlines() if row.startswith("| ")]
    assert len(rows) - 1 >= 24


def test_every_name_has_one_meaning_and_a_place() -> None:
    rows = re.findall(
        r"^\| `(\w+)`(?:, `\w+`)? \| [^|]+ \| \[[^]]+\]\(([^)]+)\) \|$", page("docs/names.md"), flags=re.MULTILINE
    )
    names = [name for name, _ in rows]
    assert {"slot", "class", "form", "job", "op"} <= set(names)
    assert (
        len(names)
        == len(set(names))
        == len([row for row in page("docs/names.md").splitlines() if row.startswith("| `")])
    )
    assert [place for _, place in rows if not (ROOT / "docs" / place).is_file()] == []
