"""Cases as nested dicts and lists (their JSON), and simpler values for a place in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.workload.workload import Op, OpKind

CHILDREN = Op.__struct_fields__.index("children")
"""Where they are in an operation."""

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
    """Without workloads that no tenant has, and graphs and kernels that nothing launches."""
    used = {tenant["workload"] for tenant in tree["scenario"]["tenants"]}
    workloads = {name: _used_kernels(w) for name, w in tree["workloads"].items() if name in used}
    return {**tree, "workloads": workloads}


def _used_kernels(workload: Any) -> dict[str, Any]:
    """Operations, children and nodes are lists; a row of the kernel or graph table is at index 2, 0 and 1 of them."""
    ops = [op for variant in workload["variants"] for thread in _threads(variant) for op in thread]
    graphs = _places(op[2] for op in ops if op[0] == OpKind.GRAPH)
    nodes = [node for row in graphs for node in workload["graphs"][row] if node[0] == OpKind.KERNEL]
    children = [child for op in ops for child in op[CHILDREN]]
    launched = [op[2] for op in ops if op[0] == OpKind.KERNEL]
    kernels = _places([*launched, *(node[1] for node in nodes), *(child[0] for child in children)])

    def renumbered(op: Any) -> Any:
        if op[0] == OpKind.GRAPH:
            return put(op, (2,), graphs[op[2]])
        if op[0] == OpKind.KERNEL:
            op = put(op, (2,), kernels[op[2]])
        return put(op, (CHILDREN,), [put(child, (0,), kernels[child[0]]) for child in op[CHILDREN]])

    def renumbered_node(node: Any) -> Any:
        return put(node, (1,), kernels[node[1]]) if node[0] == OpKind.KERNEL else node

    variants = []
    for variant in workload["variants"]:
        first, *others = [[renumbered(op) for op in thread] for thread in _threads(variant)]
        variants.append({**variant, "ops": first, **({"threads": others} if others else {})})
    return {
        **workload,
        "kernels": [workload["kernels"][row] for row in kernels],
        "graphs": [[renumbered_node(node) for node in workload["graphs"][row]] for row in graphs],
        "variants": variants,
    }


def _threads(variant: dict[str, Any]) -> list[Any]:
    return [variant["ops"], *variant.get("threads", [])]


def _places(rows: Iterable[int]) -> dict[int, int]:
    """The place of each row among those in use."""
    return {row: place for place, row in enumerate(sorted(set(rows)))}
