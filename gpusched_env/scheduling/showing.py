"""Views as a device hands them out: copies of what it shows, each made when it is first read.

A device keeps what it shows to itself, and checks commands by that (:mod:`.legality`). A scheduler gets tables over
``bytes``, which NumPy lets nobody write to, and knows the device by a number. So nothing that it is given leads to the
truth, and whatever it does to that changes only what it reads itself.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, Generic, TypeVar

from gpusched_env.errors import GpuschedError
from gpusched_env.scheduling.view import View

S = TypeVar("S")
Builders = Mapping[str, Callable[[S], Any]]
"""Functions that make each of :data:`FIELDS` of a device, or of its memory."""
FIELDS: Final = {field.name: field.type == "ViewTable" for field in fields(View)}
"""Fields of a view, and whether each is a table."""


class _Made(dict[str, Any], Generic[S]):
    """Fields, each of which is made when it is first read."""

    def __init__(self, source: S, builders: Builders[S]) -> None:
        self._source, self._builders = source, builders

    def __missing__(self, name: str) -> Any:
        made = self[name] = self._builders[name](self._source)
        return made


class Showing:
    """The fields of a view as a device has them at present, for itself."""

    def __init__(self, source: S, builders: Builders[S]) -> None:
        self.made = _Made(source, builders)
        self.epoch = 0
        """Number of changes so far; a view is valid within one epoch."""
        # No other device's number can be guessed from it.
        self.number = secrets.randbits(63)
        _SHOWINGS[self.number] = weakref.ref(self, lambda _, number=self.number: _SHOWINGS.pop(number, None))  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        if name not in FIELDS:
            raise AttributeError(name)
        return self.made[name]

    @property
    def place(self) -> tuple[int, int]:
        """Number and epoch: what a view knows of its device."""
        return self.number, self.epoch

    def change(self) -> None:
        """The device has changed: views so far can be read no more."""
        self.made.clear()
        self.epoch += 1

    def view(self) -> LazyView:
        """What a scheduler is given."""
        return LazyView(self.place, self.made["time_us"])


Shown = View | Showing
_SHOWINGS: dict[int, weakref.ref[Showing]] = {}
"""By number those that there are: a lookup takes a third of that in a ``WeakValueDictionary``."""


def read_field(place: tuple[int, int], name: str) -> Any:
    """A field of the device at a place, as it is there: to be copied before a scheduler gets it.

    Raises:
        GpuschedError: the device has changed since, or is gone.
    """
    number, epoch = place
    known = _SHOWINGS.get(number)
    showing = None if known is None else known()
    if showing is None or showing.epoch != epoch:
        raise GpuschedError("a view must be read before the next command is applied")
    return showing.made[name]


def complete_view(source: S, builders: Builders[S]) -> View:
    """All that a device shows, independent of it."""
    showing = Showing(source, builders)
    return showing.view().complete()


class LazyView(View):
    """A view whose fields are copied when they are first read: most schedulers read few of them."""

    def __init__(self, place: tuple[int, int], time_us: float) -> None:
        """``place``: of the :class:`Showing`, which it must not hold, as that holds the truth."""
        own = self.__dict__
        own["_place"] = place
        own["time_us"] = time_us

    def __getattr__(self, name: str) -> Any:
        if name not in FIELDS:
            raise AttributeError(name)
        value = read_field(self.__dict__["_place"], name)
        self.__dict__[name] = value = value.frozen() if FIELDS[name] else value
        return value

    def complete(self) -> View:
        """The view with all its fields, independent of the device."""
        return View(**{name: getattr(self, name) for name in FIELDS})
