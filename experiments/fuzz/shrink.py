"""From a case on which two devices differ to a simpler one on which they still do, in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import Case, Difference, Script
from gpusched_env.experiments.fuzz.duel import MakeDevice
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.play import play
from gpusched_env.experiments.fuzz.tree import (
    Path,
    case_of,
    get,
    put,
    simpler_numbers,
    tree_of,
    walk,
    without,
    without_unused,
)
from gpusched_env.experiments.fuzz.workloads import SHORTEST_BLOCK_US, fits, kernel_waves
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.arrivals import Bursts, Periodic, Poisson

SECONDS = 60.0
MOST_JOBS = 2000
ROUNDS = 3

FIXED = ("player", "env", "most_commands", "gpu")
"""Parts of a case for which the default is not simpler, or which have a pass of their own."""
WORTH: tuple[Path, ...] = (("player", "moves"), ("scenario", "tenants"))
"""Lists that are worth shortening, besides those of workloads."""
NUMBERS = ("workloads", "scenario", "player", "seed", "before", "snapshot", "env", "spreads")
"""Where numbers may become smaller or shorter."""


class Shrinker:
    """Greedy: keeps every simplification after which the same kind of difference is found."""

    def __init__(self, case: Case, device: MakeDevice, against: MakeDevice, *, seconds: float = SECONDS) -> None:
        self.case = case
        """The simplest so far."""
        self.difference: Difference | None = None
        """What it shows; ``None`` until :meth:`run`, or if the case shows nothing."""
        self.tried = 0
        self._play: Callable[[Case], Outcome] = lambda c: play(c, device, against)
        self._ends = time.monotonic() + seconds
        self._ends_in = seconds
        self._tree: dict[str, Any] = {}

    def run(self) -> None:
        """Simplify until nothing more can be left out, or the time is over."""
        self._ends = time.monotonic() + self._ends_in
        outcome = self._play(self.case)
        self.difference = outcome.difference
        if self.difference is None:
            return
        self._tree = tree_of(self.case)
        self._try_case(self.case.self_contained())
        self._try_case(msgspec.structs.replace(self.case, player=Script(moves=tuple(outcome.moves))))
        if not isinstance(self.case.player, Script):
            return
        self._cut()
        for _ in range(ROUNDS):
            before = self._tree
            self._simple_player()
            for path in WORTH:
                self._lists(path)
            self._defaults()
            self._arrivals()
            self._like_toy()
            while True:
                inner = self._tree
                self._all_lists()
                self._try(without_unused(self._tree))
                self._numbers()
                self._cut()
                if self._tree == inner or self._over():
                    break
            if self._tree == before or self._over():
                break

    # ---- trying ----------------------------------------------------------------------------------

    def _over(self) -> bool:
        return time.monotonic() > self._ends

    def _try(self, tree: dict[str, Any]) -> bool:
        """Keep ``tree`` if it still shows the same kind of difference."""
        if self._over() or tree == self._tree:
            return False
        try:
            case = case_of(tree)
        except msgspec.ValidationError:
            return False
        return _bounded(case) and self._try_case(case)

    def _try_case(self, case: Case) -> bool:
        if case == self.case:
            return False
        self.tried += 1
        try:
            difference = self._play(case).difference
        except InputError:
            return False
        assert self.difference is not None
        if difference is None or difference.kind != self.difference.kind:
            return False
        self.case, self.difference, self._tree = case, difference, tree_of(case)
        return True

    # ---- passes ----------------------------------------------------------------------------------

    def _cut(self) -> None:
        """Leave the episode where the difference shows."""
        assert self.difference is not None
        steps = max(0, self.difference.step)
        tree = put(self._tree, ("player", "moves"), get(self._tree, ("player", "moves"))[:steps])
        self._try(put(tree, ("most_commands",), steps))
        # What shows at the end only may show at an earlier one.
        while self._any(("most_commands",), simpler_numbers):
            pass
        horizon: Path = ("scenario", "horizon_us")
        while self._any(horizon, lambda us: [n for n in (_short(0.5 * us), _short(0.8 * us)) if 1.0 <= n < us]):
            pass

    def _any(self, path: Path, simpler: Callable[[Any], Iterable[float]]) -> bool:
        """Put the first of some simpler numbers that will do in place of a number, if there is one."""
        try:
            value = get(self._tree, path)
        except (KeyError, IndexError):
            # What has become a default is not written out.
            return False
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return any(self._try(put(self._tree, path, number)) for number in simpler(value))

    def _simple_player(self) -> None:
        """No moves at all, but the same one all the time."""
        none: list[Any] = []
        for then in ("wait", "launch"):
            for moves in (none, get(self._tree, ("player", "moves"))[:1]):
                if self._try(put(self._tree, ("player",), {"kind": "script", "moves": moves, "then": then})):
                    return

    def _all_lists(self) -> None:
        for path in WORTH:
            self._lists(path)
        for name in list(self._tree["workloads"]):
            self._lists(("workloads", name, "variants"))
            self._lists(("workloads", name, "iteration_us"))
            for i in range(len(self._tree["workloads"][name]["variants"])):
                self._lists(("workloads", name, "variants", i, "ops"))
                self._threads(("workloads", name, "variants", i))
            for g, nodes in enumerate(get(self._tree, ("workloads", name, "graphs"))):
                # What waits for a node that has gone would wait for a later one: from the end only.
                while len(nodes) > 1 and self._try(put(self._tree, ("workloads", name, "graphs", g), nodes[:-1])):
                    nodes = nodes[:-1]

    def _threads(self, path: Path) -> None:
        """Drop threads, and operations of those that are left."""
        for t in reversed(range(len(get(self._tree, path).get("threads", [])))):
            threads = get(self._tree, path)["threads"]
            if not self._try(put(self._tree, (*path, "threads"), threads[:t] + threads[t + 1 :])):
                self._lists((*path, "threads", t))

    def _lists(self, path: Path) -> None:
        """Drop elements of a list: halves, quarters, ... single ones, from the end."""
        size = len(get(self._tree, path)) // 2 or 1
        while True:
            start = len(get(self._tree, path)) - size
            while start > -size and not self._over():
                items = get(self._tree, path)
                low = max(0, start)
                if items[low : start + size]:
                    self._try(put(self._tree, path, items[:low] + items[start + size :]))
                start -= size
            if size == 1 or self._over():
                return
            size = max(1, size // 2)

    def _defaults(self) -> None:
        """Leave out what has a default."""
        for path, _ in list(walk(self._tree)):
            if path and isinstance(path[-1], str) and path[0] not in FIXED:
                try:
                    candidate = without(self._tree, path)
                except (KeyError, IndexError, TypeError):
                    continue
                self._try(candidate)

    def _like_toy(self) -> None:
        """Make the GPU like the one that problems are solved by hand on: as a whole, in groups, in single fields."""
        if self._tree["gpu"] is None:
            return
        toy: dict[str, Any] = msgspec.to_builtins(load_gpu("toy-4sm"))
        self._try(put(self._tree, ("gpu",), {**toy, "name": self._tree["gpu"]["name"]}))
        for path, value in list(walk(toy)):
            if path and path[0] not in ("name", "sources"):
                self._try(put(self._tree, ("gpu", *path), value))
        off = dict.fromkeys(("issue", "oldest_first", "light_wait", "dram"), False)
        contention = get(self._tree, ("gpu", "contention"))
        self._try(put(self._tree, ("gpu", "contention"), contention | off))
        for name in off:
            self._try(put(self._tree, ("gpu", "contention", name), False))
        for sms in (1, 2, 4, 8):
            fewer = sms < self._tree["gpu"]["sms"]
            if fewer and self._try(put(self._tree, ("gpu",), self._tree["gpu"] | {"sms": sms, "sm_order": "linear"})):
                break

    def _arrivals(self) -> None:
        """Arrivals that need no random numbers."""
        for i in range(len(self._tree["scenario"]["tenants"])):
            path: Path = ("scenario", "tenants", i)
            tenant = get(self._tree, path)
            for jobs in (1, 2, 3):
                if self._try(put(self._tree, path, tenant | {"arrivals": {"kind": "backlog"}, "jobs": jobs})):
                    break
            else:
                if tenant["arrivals"]["kind"] != "backlog":
                    self._try(put(self._tree, (*path, "arrivals"), {"kind": "closed-loop"}))

    def _numbers(self) -> None:
        for path, _ in list(walk(self._tree)):
            if _is_kind(path):
                continue
            if path and (path[0] in NUMBERS or (path[:2] == ("gpu", "timing") and path[-1] != "slice_us")):
                while self._any(path, simpler_numbers):
                    pass


def _is_kind(path: Path) -> bool:
    """Whether a number is no quantity: the kind of an operation or node (with 2 its place in the list)."""
    return len(path) > 2 and path[0] == "workloads" and path[-1] == 0 and path[-3] in ("ops", "graphs")


def _short(number: float) -> float:
    """With one digit."""
    return float(f"{number:.0e}")


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
            case Periodic():
                jobs = horizon_us / tenant.arrivals.period_us
            case Poisson():
                jobs = horizon_us * tenant.arrivals.rate_per_s * 1e-6
            case Bursts():
                jobs = horizon_us * tenant.arrivals.rate_per_s * 1e-6 * tenant.arrivals.mean_size
            case _:
                jobs = 0.0
        if min(jobs, tenant.jobs or jobs) > MOST_JOBS:
            return False
    return True
