"""Requests of a trace: when each came, and how long its prompt and its answer were."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError

MOST_REQUESTS: Final = 2**22
"""Of a file."""
MOST_TOKENS: Final = 2**20
"""Of a prompt, or an answer."""
LATEST_US: Final = 1e14
"""Three years: published traces last for up to four months."""

Clock = Callable[[Any], float]
"""What makes a time in microseconds of a cell; NaN: the cell is none."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What a file says of requests, in order of arrival."""

    times_us: NDArray[np.float64]
    """Shape ``(requests,)``, ascending, at least 0."""
    prompts: NDArray[np.int64] | None
    answers: NDArray[np.int64] | None
    """Shape ``(requests,)``, tokens, at least 1; ``None``: the file does not say."""


def unit_clock(unit_us: float) -> Clock:
    """Of numbers of a unit."""
    return lambda cell: number(cell) * unit_us


def date_clock() -> Clock:
    """Of dates with a time of day, counted from the first one; UTC where they name no zone."""
    first: list[datetime] = []

    def since_first(cell: Any) -> float:
        try:
            date = datetime.fromisoformat(cell.strip())
            when = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
            first[:] = first or [when]
            return (when - first[0]) / timedelta(microseconds=1)
        except (AttributeError, TypeError, ValueError, OverflowError):
            return math.nan

    return since_first


def number(cell: Any) -> float:
    """A cell of a table or a document as a number; NaN: it is none."""
    try:
        return math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


class RequestList:
    """Requests while they are read: each is checked."""

    def __init__(self, where: str, names: Sequence[str | None], clock: Clock, place: str = "line") -> None:
        """``names``: of the times, the prompts and the answers (``None``: there are none); ``place``: what is counted
        in errors."""
        self._where, self._place, self._clock = where, place, clock
        self._name, *lengths = names
        self._times, self._before_us = array("d"), 0.0
        self._lengths = array("q"), array("q")
        self._given = [(name, tokens) for name, tokens in zip(lengths, self._lengths, strict=True) if name is not None]

    def add(self, line: int, cells: Sequence[Any]) -> None:
        """One more, of a ``line``: its time, its prompt and its answer, as far as there are such columns.

        Raises:
            InputError: the time is no number, negative, beyond :data:`LATEST_US` or before that of the last request; a
                length is no number of tokens; there are more requests than :data:`MOST_REQUESTS`.
        """
        time_us = self._clock(cells[0])
        if not self._before_us <= time_us <= LATEST_US:
            raise self._wrong(line, self._name, cells[0], _right_time(time_us, self._before_us))
        if len(self._times) == MOST_REQUESTS:
            raise InputError(f"{self._where}: {self._place} {line}: more than {MOST_REQUESTS} requests; cut the file")
        self._times.append(time_us)
        self._before_us = time_us
        for (name, tokens), cell in zip(self._given, cells[1:], strict=True):
            length = number(cell)
            if not 0 <= length <= MOST_TOKENS or length != int(length):
                right = f"must be a whole number of tokens from 0 to {MOST_TOKENS}"
                raise self._wrong(line, name, cell, right)
            # A request that failed has an answer of 0; its prefill yields a token.
            tokens.append(max(1, int(length)))

    def requests(self) -> Requests:
        """All of them.

        Raises:
            InputError: there is none.
        """
        if not self._times:
            raise InputError(f"{self._where}: has no requests")
        prompts, answers = (np.array(tokens, np.int64) if tokens else None for tokens in self._lengths)
        return Requests(np.array(self._times), prompts, answers)

    def _wrong(self, line: int, name: str | None, cell: Any, right: str) -> InputError:
        return InputError(f"{self._where}: {self._place} {line}: {name} is {str(cell)[:40]!r}, {right}")


def _right_time(time_us: float, before_us: float) -> str:
    if math.isnan(time_us):
        return "must be a number, or in Azure's traces a date with a time of day"
    if 0.0 <= time_us < before_us or time_us < 0.0 < before_us:
        return "before that of the request above it; sort the file by its times"
    return f"must be at least 0 and at most {LATEST_US:g} us"
