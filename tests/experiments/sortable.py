"""What pages with tables have in common."""

from __future__ import annotations

from pathlib import Path

import gpusched_env

TEMPLATES = Path(gpusched_env.__file__).parent / "experiments" / "templates"


def assert_sortable(page: str) -> None:
    """All tables of the page are marked as sortable, and it has the scripts that sort and that say what scrolls."""
    assert page.count("<table>") == page.count('<div class="scroll sortable"><table>') > 0
    assert all((TEMPLATES / name).read_text(encoding="utf-8").strip() in page for name in ("tables.js", "scroll.js"))
