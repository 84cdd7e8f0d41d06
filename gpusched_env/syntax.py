"""What the text of a source says, whatever it looks like: the hash of its syntax tree, and what it imports."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

LONGEST_NAME: Final = 80
"""Characters that the name of a data file has at most."""


class Source(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a file that something is made by."""

    digest: str
    """SHA-256 of its syntax tree, without docstrings and what only type checkers run; of its bytes, if it has none."""
    imports: tuple[tuple[str, bool], ...] = ()
    """Modules, or names in them as ``module:name``, and whether only a function imports them when it runs."""
    strings: tuple[str, ...] = ()
    """Strings in it that may be names of files."""


def parsed(content: bytes) -> Source:
    """What a source of Python says; of one that is of another Python, nothing but its bytes are known."""
    found = _Plain()
    try:
        found.add(ast.parse(content))
    except (SyntaxError, ValueError, RecursionError):  # Nothing that ran: it is only named in an import.
        return Source(hashlib.sha256(content).hexdigest())
    digest = hashlib.sha256("\n".join(found.parts).encode()).hexdigest()
    return Source(digest, tuple(found.imports), tuple(sorted(found.strings)))


@dataclass
class _Plain:
    """A syntax tree as lines, without what changes nothing; and the imports and strings that are found on the way.

    Only what is there is written, so that versions of Python that add fields to the tree agree.
    """

    parts: list[str] = field(default_factory=list)
    imports: dict[tuple[str, bool], None] = field(default_factory=dict)
    strings: set[str] = field(default_factory=set)
    is_late: bool = False

    def add(self, node: Any) -> None:
        if isinstance(node, list):
            self.parts.append("[")
            for item in node:
                self.add(item)
            self.parts.append("]")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            before, self.is_late = self.is_late, True
            self._add_node(node)
            self.is_late = before
        elif isinstance(node, ast.AST):
            self._add_node(node)
        else:
            self.parts.append(repr(node))

    def _add_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # A docstring, of whatever it stands behind.
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            self.add(node.orelse)
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _may_name_a_file(node.value):
            self.strings.add(node.value)
        self.imports.update(dict.fromkeys((name, self.is_late) for name in _imported(node)))
        self.parts.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(node, ast.JoinedStr):
                value = _joined(node.values)
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
                self.parts.append(name)
                self.add(value)


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string. Of plain text Python 3.12 may have several behind each other, and empty ones."""
    found: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Constant) and found and isinstance(found[-1], ast.Constant):
            value = ast.Constant(found.pop().value + value.value)  # type: ignore[attr-defined]
        found.append(value)
    return [value for value in found if not isinstance(value, ast.Constant) or value.value]


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        return [base if alias.name == "*" else f"{base}:{alias.name}" for alias in node.names]
    return []


def _may_name_a_file(text: str) -> bool:
    if not text or len(text) > LONGEST_NAME or "/" in text or text.startswith("."):
        return False
    return Path(text).suffix not in ("", ".py")
