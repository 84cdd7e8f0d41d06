"""Objects that need care: used by one thread at a time, sealed when saved, or not to be copied at all."""

from __future__ import annotations

import functools
import hashlib
import pickle
import threading
from collections.abc import Callable
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, Self, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, ThreadError


class OneThread:
    """Base of objects for one thread: a method that is :func:`one_thread_at_a_time` refuses a second one.

    That takes a fifth of a microsecond.
    """

    entry: threading.RLock
    """Lock that the thread inside holds; objects that share memory share one."""

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


def one_thread_at_a_time(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
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


T = TypeVar("T")


class Sealed:
    """Base of dataclasses with slots. Compiled code trusts what it goes on from: numbers there are places in memory."""

    __slots__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        content = pickle.dumps([getattr(self, name) for name in self.__slots__])
        return _open, (type(self), content, hashlib.sha256(content).digest())


def _open(kind: type[Any], content: bytes, seal: bytes) -> Any:
    if hashlib.sha256(content).digest() != seal:
        raise InputError(f"a saved state ({kind.__name__}) was damaged or changed since it was pickled; save it again")
    return kind(*pickle.loads(content))


def deep_copy(given: T) -> T:
    """A copy of what can be pickled, in all its depth."""
    made: T = pickle.loads(pickle.dumps(given))
    return made


def read_only_copy(array: NDArray[Any]) -> NDArray[Any]:
    """An array over ``bytes``, which NumPy never lets anybody write to; faster than a copy record by record.

    Of one that is such an array already it shares the bytes, but nothing that can be changed.
    """
    base: Any = array.base
    shared = type(base) is bytes and len(base) == array.nbytes and array.flags.c_contiguous
    return np.ndarray(array.shape, array.dtype, base if shared else array.tobytes())


class Uncopied:
    """Refuses ``copy``, ``deepcopy`` and ``pickle``: a copy would hold the addresses of the original's memory."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled.

        Raises:
            TypeError: always; it names the way to copy a state.
        """
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: it holds addresses of memory; "
            "make another one and give it the state: save_state() and restore_state(), "
            "of a device snapshot() and restore()"
        )
