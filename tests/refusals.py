"""Errors that tests expect: of which kind, and what they name. The sentence around it is free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def refused(
    kind: type[BaseException] | tuple[type[BaseException], ...], *named: object
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """What is done inside raises the error, and its message names all of these: the culprit, or the decisive word."""
    with pytest.raises(kind) as caught:
        yield caught
    message = str(caught.value)
    missing = [str(each) for each in named if str(each) not in message]
    assert not missing, f"{', '.join(missing)}: not named in {message!r}"
