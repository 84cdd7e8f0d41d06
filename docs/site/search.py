"""A Sphinx extension: which pages a search shows first.

Sphinx gives all pages with the words the same score, and shows them by their titles.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from navigation import MADE, PAGE, sections
from sphinx.application import Sphinx

RAISED = {"Tutorial": 4, "Guides": 3, "Reference": 3}
"""By how much the score of pages of a section is raised."""
TITLED = 5
"""What a page gets whose title has all words that are searched for."""
FILE = "scorer.js"
SCORER = """\
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  raised: %s,
  score: ([page, title, anchor, about, score]) => {
    const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\\s+/);
    const titled = words.every((word) => title.toLowerCase().includes(word)) ? %d : 0;
    return score + (Scorer.raised[page] || 0) + titled;
  },
};
"""


def raised() -> dict[str, int]:
    """By how much the scores of pages are raised, by name."""
    return {page: RAISED.get(title, 0) for title, text in sections().items() for _, page in PAGE.findall(text)}


def write_scorer(app: Sphinx) -> None:
    """Write the function that the page of results calls."""
    path = Path(app.srcdir) / MADE / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCORER % (json.dumps(raised()), TITLED), encoding="utf-8")
    app.config.html_search_scorer = str(path)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_scorer)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
