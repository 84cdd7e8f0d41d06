"""HTML pages from templates in ``assets/``: everything is inlined, so that a page is one file."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def asset(name: str) -> str:
    """The text of a file in ``assets/``."""
    return (resources.files("gpusched_env.experiments") / "assets" / name).read_text(encoding="utf-8")


def embed(data: Any) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def fill(template: str, values: dict[str, str]) -> str:
    """The asset ``template`` with every ``%%name%%`` replaced by ``values[name]``."""
    parts = asset(template).split("%%")
    # Odd parts are names; filling them one by one keeps inserted text from being searched for names.
    return "".join(values[part] if i % 2 else part for i, part in enumerate(parts))
