"""From a case on which two devices differ to a simpler one on which they still do, in the same way.

Works on a case's JSON: it tries what is simpler at each place, and keeps what still shows the same kind of difference.
Hypothesis's shrinker does not carry this (``docs/fuzzing.md`` says why).
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import Case, Difference, Script
from gpusched_env.experiments.fuzz.duel import MakeDevice, play
from gpusched_env.experiments.fuzz.workloads import SHORTEST_BLOCK_US, fits, kernel_waves
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.arrivals import Bursts, Periodic, Poisson
from gpusched_env.workload.workload import Op, OpKind

Path = tuple[str | int, ...]
Simpler = Callable[[Any], Iterable[Any]]
"""Values to try in place of one, the simplest first."""

SECONDS = 60.0
MOST_JOBS = 2000
ROUNDS = 3
GONE: Final = object()
"""In place of a value: leave it out, for its default."""
MOVES: Path = ("player", "moves")
TENANTS: Path = ("scenario", "tenants")

# Places in a case, as regular expressions for paths like "workloads/w0/variants/0/ops".
LISTS = r"player/moves|scenario/tenants|workloads/[^/]*/(variants(/\d+/(ops|threads(/\d+)?))?|iteration_us|graphs/\d+)"
"""Lists that are worth shortening."""
OPTIONAL = r"(?!player|env|most_commands|gpu|capture/).*[^/\d]+"
"""Fields that may have a default; those left out are simplified in a way of their own, or their default is not
simpler."""
MEMORY = r"workloads/.*/ops/\d+/[89]"
"""What a launch reads and writes."""
NUMBERS = (
    r"(?!workloads/.*/(ops|(threads|graphs)/\d+)/\d+/0$)((workloads|scenario|player|snapshot|env|spreads|capture)/.*|seed|before|task_us)"
    r"|gpu/timing/(?!slice_us).*"
)
"""Numbers that may become smaller or shorter; the kind of an operation or node (2, 0 places in) is none."""

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
        self._makers = device, against
        self._seconds = seconds
        self._ends = 0.0
        self._tree: dict[str, Any] = {}

    def run(self) -> None:
        """Simplify until nothing more can be left out, or the time is over."""
        self._ends = time.monotonic() + self._seconds
        outcome = play(self.case, *self._makers)
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
            self._first(("player",), _players)
            self._shorten(MOVES)
            self._shorten(TENANTS)
            self._everywhere(OPTIONAL, lambda _: [GONE])
            self._everywhere(r"scenario/tenants/\d+", _arrivals)
            self._like_toy()
            inner = None
            while self._tree != inner:
                inner = self._tree
                for path in _places(self._tree, LISTS):
                    self._shorten(path)
                self._try(without_unused(self._tree))
                if touches_memory(self._tree):
                    self._everywhere(MEMORY, _less_memory)
                self._everywhere(NUMBERS, simpler_numbers)
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
        return case != self.case and _bounded(case) and self._try_case(case)

    def _try_case(self, case: Case) -> bool:
        assert self.difference is not None
        try:
            difference = play(case, *self._makers).difference
        except InputError:
            return False
        if difference is None or difference.kind != self.difference.kind:
            return False
        self.case, self.difference, self._tree = case, difference, tree_of(case)
        return True

    def _value(self, path: Path) -> Any:
        """What stands there; :data:`GONE` if it, or what it was a part of, was left out."""
        try:
            return get(self._tree, path)
        except (KeyError, IndexError, TypeError):  # TypeError: a part of null.
            return GONE

    def _first(self, path: Path, simpler: Simpler) -> bool:
        """Put the first of some simpler values that will do in place of one, if there is one."""
        value = self._value(path)
        if value is GONE:
            return False
        return any(self._try(put(self._tree, path, other)) for other in simpler(value))

    def _simplify(self, path: Path, simpler: Simpler) -> None:
        while self._first(path, simpler):
            pass

    # ---- passes ----------------------------------------------------------------------------------

    def _everywhere(self, places: str, simpler: Simpler) -> None:
        for path in _places(self._tree, places):
            self._simplify(path, simpler)

    def _cut(self) -> None:
        """Leave the episode where the difference shows."""
        assert self.difference is not None
        steps = max(0, self.difference.step)
        tree = put(self._tree, MOVES, get(self._tree, MOVES)[:steps])
        self._try(put(tree, ("most_commands",), steps))
        # What shows at the end only may show at an earlier one.
        self._simplify(("most_commands",), simpler_numbers)
        self._simplify(("scenario", "horizon_us"), _sooner)

    def _shorten(self, path: Path) -> None:
        """Drop elements of a list: halves, quarters, ... single ones, from the end."""
        items = self._value(path)
        size = 0 if items is GONE else len(items) // 2 or 1
        while size:
            start = len(get(self._tree, path)) - size
            while start > -size:
                items = get(self._tree, path)
                self._try(put(self._tree, path, items[: max(0, start)] + items[start + size :]))
                start -= size
            size //= 2

    def _like_toy(self) -> None:
        """Make the GPU like :data:`TOY`: as a whole, in groups, in single fields; then without contention, smaller."""
        if self._tree["gpu"] is None:
            return
        self._first(("gpu",), lambda own: [TOY | {"name": own["name"]}])
        for path in _places(TOY, r"(?!name|sources).+"):
            self._first(("gpu", *path), functools.partial(_instead, get(TOY, path)))
        off = dict.fromkeys(("issue", "oldest_first", "light_wait", "dram"), False)
        self._first(("gpu", "contention"), lambda own: [own | off])
        for name in off:
            self._first(("gpu", "contention", name), functools.partial(_instead, False))
        smaller = {"sm_order": "linear"}
        self._first(("gpu",), lambda own: [own | smaller | {"sms": sms} for sms in (1, 2, 4, 8) if sms < own["sms"]])


def _instead(value: Any, _: Any) -> list[Any]:
    return [value]


def _players(player: Any) -> Iterator[Any]:
    """No moves at all, but the same one all the time."""
    for then in ("wait", "launch"):
        for most in (0, 1):
            yield {"kind": "script", "moves": player["moves"][:most], "then": then}


def _arrivals(tenant: Any) -> Iterator[Any]:
    """Arrivals that need no random numbers."""
    kind = tenant["arrivals"]["kind"]
    for jobs in (1, 2, 3):
        if kind != "backlog" or jobs < tenant["jobs"]:
            yield tenant | {"arrivals": {"kind": "backlog"}, "jobs": jobs}
    if kind not in ("backlog", "closed-loop"):
        yield tenant | {"arrivals": {"kind": "closed-loop"}}


def _less_memory(segments: Any) -> Iterator[Any]:
    """None at all, or a segment less."""
    if segments != []:
        yield []
    for place in range(len(segments or ())):
        yield segments[:place] + segments[place + 1 :]


def _sooner(horizon_us: float) -> list[float]:
    return [us for us in (_short(0.5 * horizon_us), _short(0.8 * horizon_us)) if 1.0 <= us < horizon_us]


def simpler_numbers(value: Any) -> list[float]:
    """Numbers to try in place of ``value``, the simplest first; each has fewer digits or is smaller."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if isinstance(value, int):
        candidates: list[float] = [0, 1, value // 2, 3 * value // 4, value - 1]
        return [c for c in dict.fromkeys(candidates) if 0 <= c < value]
    rounded = [0.0, 1.0, *(_short(value, digits) for digits in (1, 2, 3))]
    return [c for c in dict.fromkeys(rounded) if len(repr(c)) < len(repr(value))]


def _short(number: float, digits: int = 1) -> float:
    return float(f"{number:.{digits - 1}e}")


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


def _walk(tree: Any, path: Path = ()) -> Iterator[Path]:
    """All places below ``path``, outer ones first."""
    yield path
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from _walk(value, (*path, key))


def _places(tree: Any, pattern: str) -> list[Path]:
    """Those whose path, with slashes, is described by the regular expression ``pattern``."""
    return [path for path in _walk(tree) if re.fullmatch(pattern, "/".join(map(str, path)))]


def touches_memory(tree: dict[str, Any]) -> bool:
    """Whether it matters what launches read and write."""
    return tree["scenario"].get("window") is not None or tree.get("capture") is not None


def without_unused(tree: dict[str, Any]) -> dict[str, Any]:
    """Without workloads that no tenant has, what nothing launches of them, and memory that is not checked."""
    used = {tenant["workload"] for tenant in tree["scenario"]["tenants"]}
    workloads = {name: workload for name, workload in tree["workloads"].items() if name in used}
    for name, workload in workloads.items():
        # Graphs first: kernels of those that nothing launches are not used either.
        for table in ("graphs", "kernels"):
            places = [path for path in _walk(workload) if _names_row(table, path, workload)]
            rows = sorted({get(workload, path) for path in places})
            for path in places:
                workload = put(workload, path, rows.index(get(workload, path)))
            workload = workload | {table: [workload[table][row] for row in rows]}
        if not touches_memory(tree):
            for path in _places({"workloads": {name: workload}}, MEMORY):
                workload = put(workload, path[2:], None)
        workloads[name] = workload
    return tree | {"workloads": workloads}


def _names_row(table: str, path: Path, workload: Any) -> bool:
    """Whether a row of ``table`` stands there: operations, their children and nodes are lists."""
    match path:
        case ("variants", _, "ops", _, 2) | ("variants", _, "threads", _, _, 2):
            return bool(get(workload, path[:-1])[0] == (OpKind.KERNEL if table == "kernels" else OpKind.GRAPH))
        case ("variants", _, "ops", _, place, _, 0) | ("variants", _, "threads", _, _, place, _, 0):
            return table == "kernels" and place == CHILDREN
        case ("graphs", _, _, 1):
            return table == "kernels" and bool(get(workload, path[:-1])[0] == OpKind.KERNEL)
    return False
