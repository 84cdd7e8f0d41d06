"""A case of child launches on two devices: both get the same decisions, and all that they show is compared.

A case on which they differ is made simpler.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import msgspec

from gpusched_env.errors import DeadlockError
from gpusched_env.experiments.fuzz.compare import DuelComparison, outcome_of
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.run import Fuzzing
from gpusched_env.experiments.fuzz.stored import (
    DEFAULTED,
    TreeShrinker,
    leave_out,
    places_in,
    replace_by,
    simpler_numbers,
)
from gpusched_env.games.child_launches.device import (
    NO_LIMIT,
    SERIALISE,
    SPAWN,
    LaunchDevice,
    RequestView,
)
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.experiments.fuzz_cases import LaunchCase, LaunchCounterexample, draw_launches
from gpusched_env.games.child_launches.hardware.warp_machine import FREE
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.hardware.clock import PS_PER_US

MakeLaunchDevice = Callable[[], LaunchDevice]
COLUMNS: Final = tuple(field.name for field in fields(RequestView))


def play_launches(case: LaunchCase, device: MakeLaunchDevice, against: MakeLaunchDevice) -> Outcome:
    """Run ``case`` on a new ``device`` and on one that is trusted, and compare.

    Raises:
        InputError: the case is not a valid problem.
    """
    return outcome_of(_LaunchDuel(case, device, against))


class _LaunchDuel:
    """A case, the trusted device and the one under test."""

    def __init__(self, case: LaunchCase, device: MakeLaunchDevice, against: MakeLaunchDevice) -> None:
        self.case = case
        self.problem = case.problem()
        self.makers = (against, device)
        self.devices = (against(), device())
        """The trusted one comes first, here and in all pairs."""
        self.comparison = DuelComparison()
        self.outcome = Outcome(features=_contents(case, self.problem))
        self.dice = Dice(case.seed)
        self.taken: list[bool] = []
        self.saved: list[Any] | None = None

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the devices do."""
        if self.case.before > 0:
            self._leave_unfinished()
        self._play(self._both("reset", lambda device: device.reset(self.problem)))
        for name, call in (("advance", lambda d: d.advance()), ("apply", lambda d: d.apply(SPAWN))):
            self._both(f"{name} after the end", call)
        kept = [_record(device) for device in self.devices]
        self._count(self.devices[0])
        if self.saved is not None:
            self._play_again(kept)

    def _leave_unfinished(self) -> None:
        self.comparison.phase = "before: "
        view = self._both("reset", lambda device: device.reset(self.problem))
        for _ in range(self.case.before):
            if view is None:
                break
            view = self._decide(self.dice.chance(0.5))
        self.comparison.phase = ""

    def _play(self, view: RequestView | None) -> None:
        case, step = self.case, 0
        self._look_back(step)
        while view is not None:
            self._notice(view)
            if step == case.snapshot:
                self.saved = [device.snapshot() for device in self.devices]
            if self.dice.chance(case.misused):
                self._misuse()
            spawns = case.spawns[step] if step < len(case.spawns) else self.dice.chance(case.spawned)
            view = self._decide(spawns)
            self.taken.append(spawns)
            step += 1
            self._look_back(step)

    def _look_back(self, step: int) -> None:
        """Now and then at all launches, every time at the sums."""
        self.comparison.step = step
        expected, found = self.devices
        self.comparison.time_us = expected.time_ps / PS_PER_US
        self.comparison.equal("time", "time_ps", expected.time_ps, found.time_ps)
        self.comparison.rows("totals", expected.totals, found.totals)
        if step % 64 == 0:
            self.comparison.rows("launches", expected.launches, found.launches)

    def _decide(self, spawns: bool) -> RequestView | None:
        def go(device: LaunchDevice) -> RequestView | None:
            device.apply(SPAWN if spawns else SERIALISE)
            return device.advance()

        return self._both("decision", go)

    def _misuse(self) -> None:
        self.outcome.features.add("refusals")
        wrong: list[Callable[[LaunchDevice], Any]] = [
            lambda device: device.advance(),
            lambda device: device.apply("launch"),  # type: ignore[arg-type]
            lambda device: device.apply(None),  # type: ignore[arg-type]
            lambda device: device.restore("elsewhere"),
        ]
        call = self.dice.pick(wrong)
        self.comparison.equal("refusal", "a refusal", True, self._both("refusal", call, refused=True) is None)

    def _both(self, what: str, call: Callable[[LaunchDevice], Any], *, refused: bool = False) -> RequestView | None:
        """The same on both devices: equal views, or equal errors; the trusted one's view."""
        views = self.comparison.both(self.devices, what, call)
        if isinstance(views, Exception):
            if isinstance(views, DeadlockError):
                self.outcome.features.add("deadlock")
            return None
        if refused:
            self.comparison.differ("refusal", what, "an error", "none")
        self._views(*views)
        view: RequestView | None = views[0]
        return view

    def _views(self, expected: RequestView | None, found: RequestView | None) -> None:
        if expected is None or found is None:
            self.comparison.equal("view", "the end of the application", expected is None, found is None)
            return
        for name in COLUMNS:
            self.comparison.equal("view", f"view.{name}", getattr(expected, name), getattr(found, name))

    def _play_again(self, kept: list[Any]) -> None:
        """Check that the same decisions from the snapshots on lead to the same end."""
        self.outcome.features.add("back to a snapshot")
        saved, first = self.saved or [], self.case.snapshot or 0
        if self.case.fresh:
            saved = [pickle.loads(pickle.dumps(state)) for state in saved]
            self.devices = (self.makers[0](), self.makers[1]())
        self.comparison.phase = "played again from a snapshot: "
        states = dict(zip(map(id, self.devices), saved, strict=True))
        self._both("restore", lambda device: device.restore(states[id(device)]))
        for step in range(first, len(self.taken)):
            self.comparison.step = step
            self._decide(self.taken[step])
        for device, before in zip(self.devices, kept, strict=True):
            self.comparison.repeats("restore", "the first time and now", before, _record(device))

    def _notice(self, view: RequestView) -> None:
        """What occurs in a run."""
        happens = {
            "nested requests": view.nesting > 0,
            "requests of children of children": view.nesting > 1,
            "children wait for queues": view.waiting > view.spawned,
            "full queues": view.queues >= self.problem.machine.launches.hardware_queues,
            "full pool": view.room == 0,
            "several lanes call": view.calls > 1,
            "child blocks side by side": view.running > 1,
            "a whole window of children": view.busy_running > 0,
        }
        self.outcome.features.update(name for name, there in happens.items() if there)

    def _count(self, device: LaunchDevice) -> None:
        totals, launches = device.totals, device.launches
        counts = {"decisions": totals["decisions"], "child launches": totals["spawned"]}
        counts |= {"blocks": launches["blocks"].sum(), "refused launches": totals["refused"]}
        self.outcome.counts.update({name: int(count) for name, count in counts.items()})
        happened = {
            "children": totals["spawned"] > 0,
            "refused launches": totals["refused"] > 0,
            "spilled launches": totals["spilled"] > 0,
            "children of several blocks": bool((launches["blocks"][launches["parent"] >= 0] > 1).any()),
        }
        self.outcome.features.update(name for name, there in happened.items() if there)


def _contents(case: LaunchCase, problem: LaunchProblem) -> set[str]:
    """What a case contains."""
    costs = problem.machine.launches
    there = {
        "several kernels": len(case.kernels) > 1,
        f"queues of a {case.queue_of}": True,
        f"parents {case.parents}": True,
        f"queues held until {case.held_until} end": True,
        "aggregated launches": case.aggregated,
        "free launches": costs.per_child_cycles == costs.per_call_cycles == costs.dispatch_cycles == 0.0,
        "launches with an interval": costs.interval_cycles > 0.0,
        "a limited pool": costs.pool is not None and costs.pool < NO_LIMIT,
        "one SM": problem.machine.gpu.sms == 1,
        "an unfinished run before": case.before > 0,
    }
    return {name for name, present in there.items() if present}


def _record(device: LaunchDevice) -> dict[str, Any]:
    """Everything about a finished run, as arrays and numbers by name."""
    tables: dict[str, Any] = {"totals": device.totals.copy(), "launches": device.launches.copy()}
    columns = {f"{table}.{name}": rows[name] for table, rows in tables.items() for name in rows.dtype.names or ()}
    return {"time_ps": device.time_ps, **columns}


THREADS = r"kernels|kernels/.*/(threads|requests)"
FREE_LAUNCHES: dict[str, Any] = msgspec.to_builtins(FREE)


class LaunchShrinker(TreeShrinker[LaunchCase]):
    """A greedy shrinker, as that of the other devices."""

    OPTIONS = r"threshold|queue_of|parents|held_until|aggregated|misused|seed|before|snapshot|fresh"
    NUMBERS = (
        r"kernels/(?!.*(block|items)).*|kernels/.*items|threshold|spawned|snapshot|seed|before|machine/gpu/sms"
        r"|machine/(?!gpu).*|body/.*"
    )

    def _simplify_once(self) -> None:
        self._first(("spawned",), lambda _: [1.0, 0.0])
        self._everywhere(self.OPTIONS, leave_out)
        self._first(("machine", "launches"), lambda own: [FREE_LAUNCHES, own | {"pool": None}])
        for name, value in FREE_LAUNCHES.items():
            self._first(("machine", "launches", name), functools.partial(replace_by, value))
        # Requests of equal threads in place of those with threads of their own.
        self._everywhere(r"kernels/.*/threads", lambda own: [] if own is None else [DEFAULTED])
        for path in places_in(self._tree, THREADS):
            if isinstance(self._value(path), list):
                self._shorten(path)
        self._everywhere(self.NUMBERS, simpler_numbers)


CHILD_LAUNCHES: Final = Fuzzing(make_launch_device, draw_launches, play_launches, LaunchShrinker, LaunchCounterexample)
