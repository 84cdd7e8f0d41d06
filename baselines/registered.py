"""Hand-written schedulers by name, with options as text: ``mps(share=50)``."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.reading import parse_yaml

S = TypeVar("S")


def split_specs(text: str) -> list[str]:
    """The schedulers of a list such as ``fifo,fikit(epsilon_us=50,queues=4)``: commas in parentheses separate options.

    Raises:
        InputError: a parenthesis without its counterpart.
    """
    specs, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            break
        if character == "," and depth == 0:
            specs.append("")
        else:
            specs[-1] += character
    if depth != 0:
        raise InputError(
            f"schedulers {text!r}: a parenthesis has no counterpart; expected NAME or NAME(OPTION=VALUE,...)"
        )
    return [spec.strip() for spec in specs if spec.strip()]


def parse_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Name and options, as text, of ``NAME`` or ``NAME(OPTION=VALUE,...)``; a path in ``NAME`` may have parentheses.

    Raises:
        InputError: anything else.
    """
    name, inside = _apart(spec.strip())
    options: dict[str, str] = {}
    if "(" in name and ".py:" not in name.rpartition(")")[2]:
        raise InputError(f"scheduler {spec!r}: expected NAME or NAME(OPTION=VALUE,...)")
    for part in inside.split(","):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            continue
        if not equals or not option or not value:
            raise InputError(f"scheduler {spec!r}: {part.strip()!r} is no option; expected OPTION=VALUE")
        if option in options:
            raise InputError(f"scheduler {spec!r}: {option} is given twice")
        options[option] = value
    return name.strip(), options


def _apart(spec: str) -> tuple[str, str]:
    """A name, and what is in the last pair of parentheses if the text ends with it."""
    depth = 0
    for place in range(len(spec) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(spec[place], 0)
        if depth == 0:
            return (spec[:place], spec[place + 1 : -1]) if spec[place] == "(" else (spec, "")
    return spec, ""


def with_options(make: Callable[..., S], name: str, options: dict[str, Any]) -> S:
    """A new scheduler of the class or function ``make``, which is called ``name`` in errors.

    Values that are text are read as what the parameter's annotation says (``none`` and ``null``: ``None``).

    Raises:
        InputError: an option that it does not have, or a value that does not fit.
    """
    known = list(inspect.signature(make).parameters)
    for option in options:
        if option not in known:
            raise InputError(f"scheduler {name!r} has no option {option!r}; {_hint(option, known)}")
    parameters = inspect.signature(make).parameters.values()
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in options]
    if missing:
        raise InputError(f"scheduler {name!r} needs {', '.join(missing)}: {name}({missing[0]}=...)")
    annotated: Any = make
    types = typing.get_type_hints(annotated.__init__ if isinstance(make, type) else annotated)
    return make(**{option: _value(name, option, value, types.get(option)) for option, value in options.items()})


def options_of(make: Callable[..., Any]) -> dict[str, Any]:
    """Options of a scheduler's class or function, with their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(make).parameters.items()}


def _hint(option: str, known: Iterable[str]) -> str:
    return did_you_mean(option, known) if known else "it has no options"


def _value(name: str, option: str, value: Any, wanted: Any) -> Any:
    if not isinstance(value, str):
        return value
    if wanted is None:
        return parse_yaml(value, f"scheduler {name!r}: {option}={value}")
    try:
        return msgspec.convert("null" if value.lower() == "none" else value, wanted, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"scheduler {name!r}: {option}={value}: {error}") from error


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

    def honest(self, *, hardware: bool = True) -> list[str]:
        """Those that are not told the truth of an episode.

        ``hardware``: also those that say ``hardware = True``, as they need what no GPU of today has.
        """
        found = [name for name in self.names() if not self.is_clairvoyant(name)]
        return [name for name in found if hardware or not getattr(self.maker(name), "hardware", False)]

    def is_clairvoyant(self, name: str) -> bool:
        """Whether a scheduler is told the truth of the episode.

        Raises:
            InputError: no scheduler of that name.
        """
        return bool(getattr(self.maker(name), "clairvoyant", False))
