"""What a notebook shows of a result."""

from __future__ import annotations

from typing import Any


def html(result: Any) -> str:
    """As IPython asks for it."""
    return str(result._repr_html_())
