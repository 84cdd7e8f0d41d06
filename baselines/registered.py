"""Hand-written schedulers of one kind by name: what the kinds of games have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from gpusched_env.baselines.spec import options_of, parse_spec, with_options
from gpusched_env.errors import InputError, did_you_mean

S = TypeVar("S")


class Registered(Generic[S]):
    """Schedulers by name, and what makes them."""

    def __init__(self, kind: str, makers: Mapping[str, Callable[..., S]]) -> None:
        """
        Args:
            kind: what errors call one of them: ``scheduler``.
            makers: classes, or functions that make one, by name, in the order in which they are listed.
        """
        self._kind, self._makers = kind, dict(makers)

    def names(self) -> list[str]:
        """All names that :meth:`make` knows."""
        return list(self._makers)

    def maker(self, name: str) -> Callable[..., S]:
        """The class or function that makes a scheduler.

        Raises:
            InputError: no scheduler of that name.
        """
        if name not in self._makers:
            raise InputError(f"unknown {self._kind} {name!r}; {did_you_mean(name, self._makers)}")
        return self._makers[name]

    def make(self, spec: str, **options: Any) -> S:
        """A new scheduler.

        Args:
            spec: one of :meth:`names`, which options may follow: ``fifo``, ``mps(share=50)``.
            options: more of them, as keyword arguments.

        Raises:
            InputError: no scheduler of that name, or an option that it does not have or accept.
        """
        name, given = parse_spec(spec)
        return with_options(self.maker(name), name, {**given, **options})

    def describe(self, name: str) -> str:
        """One line on what a scheduler does: the first of its docstring, as plain text.

        Raises:
            InputError: no scheduler of that name.
        """
        return (inspect.getdoc(self.maker(name)) or "").partition("\n")[0].replace("``", "")

    def options(self, name: str) -> dict[str, Any]:
        """The options of a scheduler and their defaults.

        Raises:
            InputError: no scheduler of that name.
        """
        return options_of(self.maker(name))

    def is_clairvoyant(self, name: str) -> bool:
        """Whether a scheduler is told the truth of the episode.

        Raises:
            InputError: no scheduler of that name.
        """
        return bool(getattr(self.maker(name), "clairvoyant", False))
