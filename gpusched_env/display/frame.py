"""Data frames: the one place that imports pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError, needs

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame


def frame(columns: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> DataFrame:
    """A frame of named columns, or of records that have the same names.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise InputError(needs("a data frame", "pandas")) from error
    return DataFrame(columns)


def named(codes: Any, names: Sequence[str]) -> Any:
    """A categorical column: ``names`` by their numbers.

    Args:
        codes: shape ``(rows,)``, whole numbers that index ``names``, -1 for none.
        names: all categories, in order.
    """
    from pandas import Categorical

    return Categorical.from_codes(codes.astype(int), list(names))


def unstacked(column: Any) -> DataFrame:
    """A column with the last level of its index as columns, rows and columns as they first come.

    ``unstack(sort=False)`` by itself puts values into wrong rows before pandas 3.
    """
    rows, names = column.index.droplevel(-1).unique(), column.index.get_level_values(-1).unique()
    return column.unstack().reindex(index=rows, columns=names)
