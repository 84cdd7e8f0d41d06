"""A case on which two devices differ becomes a simpler one on which they still do, in the same way."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import msgspec

from gpusched_env.experiments.fuzz.case import Case, Script
from gpusched_env.experiments.fuzz.stored import (
    TreePath,
    TreeShrinker,
    get,
    leave_out,
    places_in,
    put,
    replace_by,
    short,
    simpler_numbers,
    walk,
)
from gpusched_env.experiments.fuzz.workloads import SHORTEST_BLOCK_US, fits, kernel_waves
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.tenant import Bursts, Periodic, Poisson, Regimes, Trace
from gpusched_env.workload.trace_replay import replay_of
from gpusched_env.workload.workload import Op, OpKind

MOST_JOBS = 2000
MOVES: TreePath = ("player", "moves")
TENANTS: TreePath = ("scenario", "tenants")

# Places in a case, as regular expressions for paths like "workloads/w0/variants/0/ops".
LISTS = (
    r"player/moves|scenario/tenants|masks"
    r"|workloads/[^/]*/(variants(/\d+/(ops|threads(/\d+)?))?|iteration_us|graphs/\d+|kernels/\d+/forms)"
)
"""Lists in a case that are worth shortening."""
OPTIONAL = r"(?!player|env|most_commands|gpu|capture/).*[^/\d]+"
"""Fields that may have a default; those left out are simplified in a way of their own, or their default is not
simpler."""
MEMORY = r"workloads/.*/ops/\d+/[89]"
"""What a launch reads and writes."""
NUMBERS = (
    r"(?!workloads/.*/(ops|(threads|graphs)/\d+)/\d+/0$|workloads/[^/]*/kernels/\d+/forms)((workloads|scenario|player|snapshot|env|spreads|capture)/.*|seed|before|task_us)"
    r"|gpu/timing/(?!slice_us).*"
)
"""Numbers that may become smaller or shorter; the kind of an operation or node (2, 0 places in) is none."""

TOY: dict[str, Any] = msgspec.to_builtins(load_gpu("toy-4sm"))
"""The GPU that problems are solved by hand on."""
CHILDREN = Op.__struct_fields__.index("children")
"""The place of an operation's children among its fields."""


class Shrinker(TreeShrinker[Case]):
    """Greedy: keeps every simplification after which the same kind of difference is found."""

    ROUNDS = 3

    def _simplify_all(self) -> None:
        moves = tuple(self._play(self.case).moves)
        self._try_case(self.case.self_contained())
        self._try_case(msgspec.structs.replace(self.case, player=Script(moves=moves)))
        if not isinstance(self.case.player, Script):
            return
        self._cut()
        super()._simplify_all()

    def _simplify_once(self) -> None:
        self._first(("player",), _players)
        self._shorten(MOVES)
        self._shorten(TENANTS)
        self._everywhere(OPTIONAL, leave_out)
        self._everywhere(r"scenario/tenants/\d+", _arrivals)
        self._like_toy()
        inner = None
        while self._tree != inner:
            inner = self._tree
            for path in places_in(self._tree, LISTS):
                self._shorten(path)
            self._try(without_unused(self._tree))
            if touches_memory(self._tree):
                self._everywhere(MEMORY, _less_memory)
            self._everywhere(NUMBERS, simpler_numbers)
            self._cut()

    def _bounded(self, case: Case) -> bool:
        return _is_bounded(case)

    # ---- passes ----------------------------------------------------------------------------------

    def _cut(self) -> None:
        """Leave the episode where the difference shows."""
        assert self.difference is not None
        steps = max(0, self.difference.step)
        tree = put(self._tree, MOVES, get(self._tree, MOVES)[:steps])
        self._try(put(tree, ("most_commands",), steps))
        # What shows at the end only may show at an earlier one.
        self._simplify(("most_commands",), simpler_numbers)
        self._simplify(("scenario", "horizon_us"), _sooner)

    def _like_toy(self) -> None:
        """Make the GPU like :data:`TOY`: as a whole, in groups, in single fields; then without contention, smaller."""
        if self._tree["gpu"] is None:
            return
        self._first(("gpu",), lambda own: [TOY | {"name": own["name"]}])
        for path in places_in(TOY, r"(?!name|sources).+"):
            self._first(("gpu", *path), functools.partial(replace_by, get(TOY, path)))
        off = dict.fromkeys(("issue", "oldest_first", "light_wait", "dram"), False)
        self._first(("gpu", "contention"), lambda own: [own | off])
        for name in off:
            self._first(("gpu", "contention", name), functools.partial(replace_by, False))
        smaller = {"sm_order": "linear"}
        self._first(("gpu",), lambda own: [own | smaller | {"sms": sms} for sms in (1, 2, 4, 8) if sms < own["sms"]])


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
    """The ways to have less memory: no segment at all, or one less."""
    if segments != []:
        yield []
    for place in range(len(segments or ())):
        yield segments[:place] + segments[place + 1 :]


def _sooner(horizon_us: float) -> list[float]:
    return [us for us in (short(0.5 * horizon_us), short(0.8 * horizon_us)) if 1.0 <= us < horizon_us]


def _is_bounded(case: Case) -> bool:
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
            case Regimes(rate_per_s=rate, busy_rate_per_s=busy):
                jobs = horizon_us * max(rate, busy) * 1e-6
            case Trace():
                jobs = horizon_us * replay_of(tenant.arrivals).jobs_a_us + len(tenant.arrivals.times_us)
            case _:
                jobs = 0.0
        if min(jobs, tenant.jobs or jobs) > MOST_JOBS:
            return False
    return True


def touches_memory(tree: dict[str, Any]) -> bool:
    """Whether it matters what launches read and write."""
    return tree["scenario"].get("window") is not None or tree.get("capture") is not None


def without_unused(tree: dict[str, Any]) -> dict[str, Any]:
    """A case without workloads that no tenant has, what nothing launches of them, and memory that is not checked."""
    used = {tenant["workload"] for tenant in tree["scenario"]["tenants"]}
    workloads = {name: workload for name, workload in tree["workloads"].items() if name in used}
    for name, workload in workloads.items():
        # Graphs first: kernels of those that nothing launches are not used either.
        for table in ("graphs", "kernels"):
            places = [path for path in walk(workload) if _names_row(table, path, workload)]
            rows = sorted({get(workload, path) for path in places})
            if table == "kernels":
                rows = _with_forms(workload, rows)
                places += [path for path in walk(workload) if _names_form(path) and path[1] in rows]
            for path in places:
                workload = put(workload, path, rows.index(get(workload, path)))
            workload = workload | {table: [workload[table][row] for row in rows]}
        if not touches_memory(tree):
            for path in places_in({"workloads": {name: workload}}, MEMORY):
                workload = put(workload, path[2:], None)
        workloads[name] = workload
    return tree | {"workloads": workloads}


def _with_forms(workload: Any, rows: list[int]) -> list[int]:
    """Rows of kernels, and of those that do the work of these."""
    forms = {form for row in rows for form in workload["kernels"][row].get("forms", ())}
    more = sorted({*rows, *forms})
    return more if more == rows else _with_forms(workload, more)


def _names_form(path: TreePath) -> bool:
    """Whether the row of a form of a kernel stands there."""
    return len(path) == 4 and path[0] == "kernels" and path[2] == "forms"


def _names_row(table: str, path: TreePath, workload: Any) -> bool:
    """Whether a row of ``table`` stands there: operations, their children and nodes are lists."""
    match path:
        case ("variants", _, "ops", _, 2) | ("variants", _, "threads", _, _, 2):
            return bool(get(workload, path[:-1])[0] == (OpKind.KERNEL if table == "kernels" else OpKind.GRAPH))
        case ("variants", _, "ops", _, place, _, 0) | ("variants", _, "threads", _, _, place, _, 0):
            return table == "kernels" and place == CHILDREN
        case ("graphs", _, _, 1):
            return table == "kernels" and bool(get(workload, path[:-1])[0] == OpKind.KERNEL)
    return False
