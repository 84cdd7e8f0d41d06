"""Cases as nested dicts and lists (their JSON), and simpler values for a place in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from gpusched_env.experiments.fuzz.case import Case

Path = tuple[str | int, ...]


def tree_of(case: Case) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(msgspec.json.encode(case))
    return tree


def case_of(tree: dict[str, Any]) -> Case:
    """Raises ``msgspec.ValidationError`` where a case cannot be so."""
    return msgspec.convert(tree, Case)


def get(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def put(tree: Any, path: Path, value: Any) -> Any:
    """A copy with another value at ``path``; what lies beside the path is shared."""
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = put(tree[path[0]], path[1:], value)
    return copy


def without(tree: Any, path: Path) -> Any:
    """A copy without the key at ``path``."""
    *above, last = path
    holder = dict(get(tree, tuple(above)))
    del holder[last]
    return put(tree, tuple(above), holder)


def walk(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All places below ``path``, outer ones first."""
    yield path, tree
    items: Any = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    for key, value in items:
        yield from walk(value, (*path, key))


def simpler_numbers(value: float) -> list[float]:
    """Numbers to try in place of ``value``, the simplest first; each has fewer digits or is smaller."""
    if isinstance(value, int):
        candidates: list[float] = [0, 1, value // 2, 3 * value // 4, value - 1]
        return [c for c in dict.fromkeys(candidates) if 0 <= c < value]
    rounded = [0.0, 1.0, *(float(f"{value:.{digits}e}") for digits in (0, 1, 2))]
    return [c for c in dict.fromkeys(rounded) if len(repr(c)) < len(repr(value))]


def without_unused(tree: dict[str, Any]) -> dict[str, Any]:
    """Without workloads that no tenant has, and kernels that no operation launches."""
    used = {tenant["workload"] for tenant in tree["scenario"]["tenants"]}
    workloads = {name: _used_kernels(w) for name, w in tree["workloads"].items() if name in used}
    return {**tree, "workloads": workloads}


def _used_kernels(workload: dict[str, Any]) -> dict[str, Any]:
    """Operations are lists, the kernel's row at index 2; other operations have -1 there."""
    rows = sorted({op[2] for variant in workload["variants"] for op in variant["ops"]} - {-1})
    place = {row: i for i, row in enumerate(rows)} | {-1: -1}
    variants = [
        {**variant, "ops": [put(op, (2,), place[op[2]]) for op in variant["ops"]]} for variant in workload["variants"]
    ]
    return {**workload, "kernels": [workload["kernels"][row] for row in rows], "variants": variants}
