"""A search on the site finds the page that answers, by the index that ``make docs`` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

INDEX = Path(__file__).resolve().parents[1] / "build" / "site" / "searchindex.js"
TITLE, TERM, PART_OF_TITLE, PART_OF_TERM, TITLED = 15, 5, 7, 2, 5
"""What the page of results gives for words: ``docs/site/search.py``."""
FIRST = 5
"""Results that are looked at."""
QUESTIONS = {
    "preemption cost": "interface",
    "train an agent": "train-an-agent",
    "learning curve": "training",
    "compare schedulers": "compare-schedulers",
    "import trace": "bring-a-trace",
    "pytorch profiler": "own-work",
    "nsight systems": "own-work",
    "reproduce paper": "reproduce-a-paper",
    "known limitations": "limitations",
    "leaderboard": "leaderboard",
    "headroom": "headroom",
    "held-out workloads": "scenarios",
    "decisions a second": "performance",
    "threads": "threads",
    "compile first use": "first-use",
    "real gpu": "drive-a-gpu",
    "observation columns": "environments",
    "action mask": "vector-environments",
    "stable-baselines3": "vector-environments",
    "rllib": "training-in-one-file",
    "resume training": "training",
    "own scheduler": "extending",
    "scenario file": "scenarios",
    "orion": "orion",
    "l2 cache": "hardware-model",
    "best effort": "glossary",
    "cheat reward": "gaming",
    "record video": "films",
    "another gpu carried over": "carry-over",
    "tuned options": "comparing",
    "language model batching": "continuous-batching",
    "fleet dispatcher": "fleet",
}


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    """The index of the site."""
    if not INDEX.exists():
        pytest.skip("make docs has not built the site")
    text = INDEX.read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


@pytest.fixture(scope="module")
def raised() -> dict[str, int]:
    """By how much the page of results raises the scores of pages."""
    text = (INDEX.parent / "_static" / "language_data.js").read_text(encoding="utf-8")
    found: dict[str, int] = json.loads(text.split("raised: ", 1)[1].split("}", 1)[0] + "}")
    return found


def pages(entries: dict[str, Any], word: str) -> list[tuple[bool, int]]:
    """Pages that a word stands on, and whether it is a whole one there."""
    matches = [word] if word in entries else [term for term in entries if word in term]
    found = [(term == word, entries[term]) for term in matches]
    return [(whole, page) for whole, of in found for page in (of if isinstance(of, list) else [of])]


def search(index: dict[str, Any], raised: dict[str, int], query: str) -> list[str]:
    """Names of pages in the order in which the site shows them."""
    from sphinx.search.en import SearchEnglish

    language = SearchEnglish({})
    stems = [language.stem(word.lower()) for word in language.split(query) if word.lower() not in language.stopwords]
    scores: dict[int, dict[str, int]] = {}
    for word in stems:
        for entries, full, part in (
            (index["terms"], TERM, PART_OF_TERM),
            (index["titleterms"], TITLE, PART_OF_TITLE),
        ):
            for whole, page in pages(entries, word):
                scores.setdefault(page, {})[word] = full if whole else part
    everything = {page: max(of.values()) for page, of in scores.items() if len(of) == len(set(stems))}
    for title, places in index["alltitles"].items():
        if query in title.lower() and 2 * len(query) >= len(title):
            for page, _ in places:
                everything[page] = max(everything.get(page, 0), round(TITLE * len(query) / len(title)))
    for page in everything:
        titled = all(word in index["titles"][page].lower() for word in query.split())
        everything[page] += raised.get(index["docnames"][page], 0) + TITLED * titled
    order = sorted(everything, key=lambda page: (-everything[page], index["titles"][page].lower()))
    return [index["docnames"][page] for page in order]


@pytest.mark.parametrize("query", QUESTIONS)
def test_the_page_that_answers_is_among_the_first(query: str, index: dict[str, Any], raised: dict[str, int]) -> None:
    assert QUESTIONS[query] in search(index, raised, query)[:FIRST]
