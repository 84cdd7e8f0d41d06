"""From a case on which two devices differ to a simpler one on which they still do, in the same way.

Works on a case's JSON: it tries what is simpler at each place, and keeps what still shows the same kind of difference.
Hypothesis's shrinker does not carry this (``docs/fuzzing.md`` says why).
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import Case, Difference, Script
from gpusched_env.experiments.fuzz.duel import MakeDevice
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.play import play
from gpusched_env.experiments.fuzz.workloads import SHORTEST_BLOCK_US, fits, kernel_waves
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.arrivals import Bursts, Periodic, Poisson
from gpusched_env.workload.workload import Op, OpKind

Path = tuple[str | int, ...]

SECONDS = 60.0
MOST_JOBS = 2000
ROUNDS = 3
GONE: Final = object()
"""In place of a value: leave it out, for its default."""
MOVES: Path = ("player", "moves")
TENANTS: Path = ("scenario", "tenants")
LISTS = ("variants", "iteration_us", "ops")
"""Lists in workloads that are worth shortening (and those in ``threads``)."""
NO_DEFAULT = ("player", "env", "most_commands", "gpu")
"""Parts of a case for which the default is not simpler, or which are simplified in a way of their own."""
NUMBERS = ("workloads", "scenario", "player", "seed", "before", "snapshot", "env", "spreads")
"""Where numbers may become smaller or shorter."""
TOY: dict[str, Any] = msgspec.to_builtins(load_gpu("toy-4sm"))
"""The GPU that problems are solved by hand on."""
CHILDREN = Op.__struct_fields__.index("children")
"""Where they are in an operation."""


class Shrinker:
    """Greedy: keeps every simplification after which the same kind of difference is found."""

    def __init__(self, case: Case, device: MakeDevice, against: MakeDevice, *, seconds: float = SECONDS) -> None:
        self.case = case
        """The simplest so far."""
        self.difference: Difference | None = None
        """What it shows; ``None`` until :meth:`run`, or if the case shows nothing."""
        self._play: Callable[[Case], Outcome] = lambda c: play(c, device, against)
        self._seconds = seconds
        self._ends = 0.0
        self._tree: dict[str, Any] = {}

    def run(self) -> None:
        """Simplify until nothing more can be left out, or the time is over."""
        self._ends = time.monotonic() + self._seconds
        outcome = self._play(self.case)
        self.difference = outcome.difference
        if self.difference is None:
            return
        self._try_case(self.case.self_contained())
        self._try_case(msgspec.structs.replace(self.case, player=Script(moves=tuple(outcome.moves))))
        if not isinstance(self.case.player, Script):
            return
        self._cut()
        for _ in range(ROUNDS):
            before = self._tree
            self._first(("player",), self._players)
            for path in (MOVES, TENANTS):
                self._shorten(path)
            for path, _ in list(walk(self._tree)):
                self._leave_out(path)
            for place in range(len(get(self._tree, TENANTS))):
                self._first((*TENANTS, place), _arrivals)
            self._like_toy()
            inner = None
            while self._tree != inner:
                inner = self._tree
                self._shorten_all()
                self._try(without_unused(self._tree))
                for path, _ in list(walk(self._tree)):
                    if _is_quantity(path):
                        self._simplify(path, simpler_numbers)
                self._cut()
            if self._tree == before:
                break

    # ---- trying ----------------------------------------------------------------------------------

    def _try(self, tree: dict[str, Any]) -> bool:
        """Keep ``tree`` if it still shows the same kind of difference."""
        if time.monotonic() > self._ends or tree == self._tree:
            return False
        try:
            case = case_of(tree)
        except msgspec.ValidationError:
            return False
        return _bounded(case) and self._try_case(case)

    def _try_case(self, case: Case) -> bool:
        assert self.difference is not None
        try:
            difference = self._play(case).difference
        except InputError:
            return False
        if difference is None or difference.kind != self.difference.kind:
            return False
        self.case, self.difference, self._tree = case, difference, tree_of(case)
        return True

    def _first(self, path: Path, simpler: Callable[[Any], Iterable[Any]]) -> bool:
        """Put the first of some simpler values that will do in place of one, if there is one."""
        try:
            value = get(self._tree, path)
        except (KeyError, IndexError):  # What has become a default is not written out.
            return False
        return any(self._try(put(self._tree, path, other)) for other in simpler(value))

    def _simplify(self, path: Path, simpler: Callable[[Any], Iterable[Any]]) -> None:
        while self._first(path, simpler):
            pass

    # ---- passes ----------------------------------------------------------------------------------

    def _cut(self) -> None:
        """Leave the episode where the difference shows."""
        assert self.difference is not None
        steps = max(0, self.difference.step)
        tree = put(self._tree, MOVES, get(self._tree, MOVES)[:steps])
        self._try(put(tree, ("most_commands",), steps))
        # What shows at the end only may show at an earlier one.
        self._simplify(("most_commands",), simpler_numbers)
        self._simplify(
            ("scenario", "horizon_us"), lambda us: [n for n in (_short(0.5 * us), _short(0.8 * us)) if 1.0 <= n < us]
        )

    def _players(self, player: Any) -> Iterator[Any]:
        """No moves at all, but the same one all the time."""
        for then in ("wait", "launch"):
            for most in (0, 1):
                yield {"kind": "script", "moves": player["moves"][:most], "then": then}

    def _leave_out(self, path: Path) -> None:
        """What has a default."""
        if path and isinstance(path[-1], str) and path[0] not in NO_DEFAULT:
            self._first(path, functools.partial(_instead, GONE))

    def _shorten_all(self) -> None:
        for path in (MOVES, TENANTS):
            self._shorten(path)
        for path, value in list(walk(self._tree)):
            if path[:1] != ("workloads",) or not isinstance(value, list):
                continue
            if path[-1] in LISTS or path[-2] == "threads":
                self._shorten(path)
            elif path[-1] == "threads":
                for place in reversed(range(len(value))):
                    self._first(path, functools.partial(_without, place))
            elif path[-2] == "graphs":
                # What waits for a node that has gone would wait for a later one: from the end only.
                self._simplify(path, lambda nodes: [nodes[:-1]] if len(nodes) > 1 else [])

    def _shorten(self, path: Path) -> None:
        """Drop elements of a list: halves, quarters, ... single ones, from the end."""
        try:
            size = len(get(self._tree, path)) // 2 or 1
        except (KeyError, IndexError):
            return
        while True:
            start = len(get(self._tree, path)) - size
            while start > -size:
                items, low = get(self._tree, path), max(0, start)
                if items[low : start + size]:
                    self._try(put(self._tree, path, items[:low] + items[start + size :]))
                start -= size
            if size == 1:
                return
            size //= 2

    def _like_toy(self) -> None:
        """Make the GPU like :data:`TOY`: as a whole, in groups, in single fields; then without contention, smaller."""
        gpu: Path = ("gpu",)
        if self._tree["gpu"] is None:
            return
        self._first(gpu, lambda own: [TOY | {"name": own["name"]}])
        for path, value in list(walk(TOY)):
            if path and path[0] not in ("name", "sources"):
                self._first(gpu + path, functools.partial(_instead, value))
        off = dict.fromkeys(("issue", "oldest_first", "light_wait", "dram"), False)
        self._first((*gpu, "contention"), lambda own: [own | off])
        for name in off:
            self._first((*gpu, "contention", name), functools.partial(_instead, False))
        smaller = {"sm_order": "linear"}
        self._first(gpu, lambda own: [own | smaller | {"sms": sms} for sms in (1, 2, 4, 8) if sms < own["sms"]])


def _instead(value: Any, _: Any) -> list[Any]:
    return [value]


def _without(place: int, items: list[Any]) -> list[Any]:
    return [items[:place] + items[place + 1 :]]


def _arrivals(tenant: Any) -> Iterator[Any]:
    """Arrivals that need no random numbers."""
    for jobs in (1, 2, 3):
        yield tenant | {"arrivals": {"kind": "backlog"}, "jobs": jobs}
    if tenant["arrivals"]["kind"] != "backlog":
        yield tenant | {"arrivals": {"kind": "closed-loop"}}


def simpler_numbers(value: Any) -> list[float]:
    """Numbers to try in place of ``value``, the simplest first; each has fewer digits or is smaller."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if isinstance(value, int):
        candidates: list[float] = [0, 1, value // 2, 3 * value // 4, value - 1]
        return [c for c in dict.fromkeys(candidates) if 0 <= c < value]
    rounded = [0.0, 1.0, *(float(f"{value:.{digits}e}") for digits in (0, 1, 2))]
    return [c for c in dict.fromkeys(rounded) if len(repr(c)) < len(repr(value))]


def _short(number: float) -> float:
    """With one digit."""
    return float(f"{number:.0e}")


def _is_quantity(path: Path) -> bool:
    """Whether a number there may be made simpler; the kind of an operation or node (2, 0 places in) is no quantity."""
    if len(path) > 2 and path[0] == "workloads" and path[-1] == 0 and path[-3] in ("ops", "graphs"):
        return False
    return bool(path) and (path[0] in NUMBERS or (path[:2] == ("gpu", "timing") and path[-1] != "slice_us"))


def _bounded(case: Case) -> bool:
    """Whether shorter numbers do not make the case last for ever: by jobs without number, by blocks without length."""
    gpu, horizon_us = case.gpu_spec(), case.scenario.horizon_us
    for workload in case.workloads.values():
        if not fits(workload, gpu):
            return False
        if any(k.duration_us < 0.2 * SHORTEST_BLOCK_US * kernel_waves(k, gpu) for k in workload.kernels):
            return False
    for tenant in case.scenario.tenants:
        match tenant.arrivals:
            case Periodic(period_us=period_us):
                jobs = horizon_us / period_us
            case Poisson(rate_per_s=rate):
                jobs = horizon_us * rate * 1e-6
            case Bursts(rate_per_s=rate, mean_size=size):
                jobs = horizon_us * rate * 1e-6 * size
            case _:
                jobs = 0.0
        if min(jobs, tenant.jobs or jobs) > MOST_JOBS:
            return False
    return True


# ---- cases as nested dicts and lists ---------------------------------------------------------------


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
    """A copy with another value at ``path`` (or without, see :data:`GONE`); what lies beside the path is shared."""
    if not path:
        return value
    copy = tree.copy()
    if len(path) == 1 and value is GONE:
        del copy[path[0]]
    else:
        copy[path[0]] = put(tree[path[0]], path[1:], value)
    return copy


def walk(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All places below ``path``, outer ones first."""
    yield path, tree
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from walk(value, (*path, key))


def without_unused(tree: dict[str, Any]) -> dict[str, Any]:
    """Without workloads that no tenant has, and graphs and kernels that nothing launches."""
    used = {tenant["workload"] for tenant in tree["scenario"]["tenants"]}
    workloads = {name: _used_kernels(w) for name, w in tree["workloads"].items() if name in used}
    return {**tree, "workloads": workloads}


def _used_kernels(workload: Any) -> dict[str, Any]:
    """Operations, children and nodes are lists; a row of the kernel or graph table is at index 2, 0 and 1 of them."""
    threads = [[v["ops"], *v.get("threads", [])] for v in workload["variants"]]
    ops = [op for variant in threads for thread in variant for op in thread]
    graphs = _places(op[2] for op in ops if op[0] == OpKind.GRAPH)
    nodes = [node for row in graphs for node in workload["graphs"][row] if node[0] == OpKind.KERNEL]
    children = [child for op in ops for child in op[CHILDREN]]
    launched = [op[2] for op in ops if op[0] == OpKind.KERNEL]
    kernels = _places([*launched, *(node[1] for node in nodes), *(child[0] for child in children)])

    def renumbered(op: Any) -> Any:
        rows = {OpKind.GRAPH: graphs, OpKind.KERNEL: kernels}.get(op[0])
        op = op if rows is None else put(op, (2,), rows[op[2]])
        return put(op, (CHILDREN,), [put(child, (0,), kernels[child[0]]) for child in op[CHILDREN]])

    def renumbered_node(node: Any) -> Any:
        return put(node, (1,), kernels[node[1]]) if node[0] == OpKind.KERNEL else node

    variants = []
    for variant, lists in zip(workload["variants"], threads, strict=True):
        first, *others = [[renumbered(op) for op in thread] for thread in lists]
        variants.append({**variant, "ops": first, **({"threads": others} if others else {})})
    return {
        **workload,
        "kernels": [workload["kernels"][row] for row in kernels],
        "graphs": [[renumbered_node(node) for node in workload["graphs"][row]] for row in graphs],
        "variants": variants,
    }


def _places(rows: Iterable[int]) -> dict[int, int]:
    """The place of each row among those in use."""
    return {row: place for place, row in enumerate(sorted(set(rows)))}
