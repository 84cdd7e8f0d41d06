"""What one thread uses at a time: objects whose memory compiled functions write to without holding Python's lock."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from gpusched_env.errors import ThreadError


class OneThread:
    """Base of such objects: a method that is :func:`alone` refuses a second thread; that takes a fifth of a
    microsecond."""

    entry: threading.RLock
    """Held by the thread that is inside; those that share memory share one."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made.entry = threading.RLock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """A copy has an entry of its own."""
        return {name: value for name, value in self.__dict__.items() if name != "entry"}


class _Entered(Protocol):
    @property
    def entry(self) -> threading.RLock: ...


S = TypeVar("S", bound=_Entered)
P = ParamSpec("P")
R = TypeVar("R")


def alone(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """``method``, of an object with an ``entry``, or a function of one: it may call others that are alone.

    Raises:
        ThreadError: another thread is in one of them; nothing has changed.
    """

    @functools.wraps(method)
    def entered(of: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        entry = of.entry
        if not entry.acquire(False):  # By place: half the time of a call by name.
            raise ThreadError(
                f"{type(of).__name__}.{method.__name__.strip('_')}: another thread uses this object at this moment; "
                "make one for each thread, or take turns under a lock"
            )
        try:
            return method(of, *args, **kwargs)
        finally:
            entry.release()

    return entered
