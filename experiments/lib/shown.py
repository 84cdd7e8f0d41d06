"""Results that show themselves: in a line, as tables on a terminal, and as tables in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpusched_env.display.table import Table, printed
from gpusched_env.experiments.lib.terminal import as_text


class Shown:
    """A result that is shown by its headline and its tables."""

    __slots__ = ()

    def headline(self) -> str:
        """What it is, in a line."""
        raise NotImplementedError

    def printed(self) -> Sequence[Table]:
        """The tables for the terminal; those without rows are left out."""
        raise NotImplementedError

    def in_notebook(self) -> Sequence[Table]:
        """The tables for a notebook."""
        return self.printed()

    def __repr__(self) -> str:
        return f"<{self.headline()}>"

    def __str__(self) -> str:
        return as_text(self)

    def __rich__(self) -> Any:
        return printed(self.printed())

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.in_notebook() if table.rows)
