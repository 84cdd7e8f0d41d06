"""A case on two devices: both get the same commands or actions, and all that they show is compared after each."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import Episode
from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.fuzz.case import Case, RandomActions, RandomCommands
from gpusched_env.experiments.fuzz.compare import TIMELINES, DuelComparison, outcome_of
from gpusched_env.experiments.fuzz.outcome import Outcome, case_features, timeline_features, view_features
from gpusched_env.experiments.fuzz.sides import EnvSide, ShownStep, Side, make_player
from gpusched_env.scheduling.commands import WAIT, Preempt, Reshape, Synchronise
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import View

MakeDevice = Callable[[], Device]
StepPair = tuple[ShownStep, ShownStep]


def play(case: Case, device: MakeDevice, against: MakeDevice) -> Outcome:
    """Run ``case`` on a new ``device`` and on one that is trusted, and compare.

    Raises:
        InputError: the case is not a valid problem.
    """
    outcome = outcome_of(_Duel(case, device, against))
    outcome.counts["commands"] = len(outcome.moves)
    return outcome


class _Duel:
    """A case, the trusted side and the one under test, and what is known of them so far."""

    def __init__(self, case: Case, device: MakeDevice, against: MakeDevice) -> None:
        self.case = case
        self.problem = case.problem()
        self.makers = (against, device)
        self.sides = self._sides()
        """The trusted one comes first, here and in all pairs."""
        self.comparison = DuelComparison()
        self.outcome = Outcome(features=case_features(case, self.problem))
        self.taken: list[Any] = []
        """Commands or actions so far that were legal."""
        self.saved = False
        self.consumers: set[int] = set()
        """Launches whose tiles were synchronised with their producers'."""

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the devices do."""
        if self.case.before > 0:
            self._leave_unfinished()
        deadlock = False
        try:
            self._play()
        except DeadlockError:
            deadlock = True
            self.outcome.features.add("deadlock")
            self._look(self._both("view", lambda side: side.now()))
        self._compare_end()
        if self.saved:
            self._play_again(deadlock)

    def _sides(self) -> tuple[Side, Side]:
        make = Side if self.case.env is None else EnvSide
        against, device = (make(maker(), self.problem, self.case) for maker in self.makers)
        return against, device

    def _both(self, what: str, call: Callable[[Side], Any]) -> tuple[Any, Any]:
        """The results of the same call on both sides.

        Raises:
            Differs: only one raised, they raised different errors, or one that nobody should raise.
            IllegalCommand, DeadlockError: both raised it.
        """
        results: list[Any] = []
        errors: list[Exception | None] = [None, None]
        for i, side in enumerate(self.sides):
            try:
                results.append(call(side))
            except Exception as error:  # whatever a device raises is a finding
                errors[i] = error
        expected, found = errors
        if expected is None and found is None:
            return results[0], results[1]
        if type(expected) is not type(found) or not isinstance(expected, self.sides[0].may_raise):
            worse = found if found is not None else expected
            self.comparison.differ(f"error {type(worse).__name__}", what, expected or "no error", found or "no error")
        assert expected is not None
        raise expected

    def _leave_unfinished(self) -> None:
        """Another episode, of which nothing may be left after a reset. Only errors count in it."""
        self.comparison.step = -1
        seed = self.case.seed
        random = RandomCommands(seed=seed, illegal=0.0) if self.case.env is None else RandomActions(seed=seed)
        player = make_player(random, self.problem, seed)
        try:
            shown: StepPair = self._both("reset", lambda side: side.reset(seed + 1))
            for _ in range(self.case.before):
                if shown[0].over or shown[1].over:
                    return
                action = self.sides[0].meaning(player(shown[0]), shown[0])
                shown = self._step(WAIT if action is None else action)
        except (DeadlockError, IllegalCommand):
            return

    def _play(self) -> None:
        case, moves, features = self.case, self.outcome.moves, self.outcome.features
        player = make_player(case.player, self.problem, case.seed)
        self.comparison.step = 0
        shown: StepPair = self._both("reset", lambda side: side.reset(case.seed))
        while True:
            self._look(shown)
            if shown[0].over:
                features.add("workload done" if self.sides[0].device.done else "horizon")
                return
            if len(moves) >= case.most_commands:
                features.add("left after the most commands")
                return
            if case.snapshot is not None and len(self.taken) == case.snapshot.step and not self.saved:
                self._both("snapshot", lambda side: side.save())
                self.saved = True
            moves.append(player(shown[0]))
            self.comparison.step = len(moves)
            action = self.sides[0].meaning(moves[-1], shown[0])
            if action is None:
                continue
            self.taken.append(action)
            before = shown
            try:
                shown = self._step(action)
            except IllegalCommand:
                self.taken.pop()
                self._check_unchanged(shown, action)
                continue
            features |= self._done(action, before[0].view)

    def _done(self, action: Any, view: View) -> set[str]:
        """What a command that both sides took where they showed ``view`` has shown."""
        match action:
            case Preempt(launch, _, partition):
                preempted = {"preempted consumers of tiles"} if launch in self.consumers else set()
                return preempted | ({"blocks saved on some SMs"} if partition is not None else set())
            case Reshape(_, form):
                return {"kernels reshaped", f"form {form}"}
            case Synchronise(consumer, policy, order, wait_kernel):
                self.consumers.add(consumer)
                gated = {"wait kernels"} if wait_kernel else set()
                producer = view.pending.producer[view.pending.id == consumer]
                if np.isin(producer, view.running.id).any():
                    gated.add("launched producers synchronised")
                return gated | {f"policy {policy.kind}", f"order {order}"}
        return set()

    def _step(self, action: Any) -> StepPair:
        return self._both(f"step {action}", lambda side: side.step(action))

    def _look(self, shown: StepPair) -> None:
        """Views, integrals, whether it is over, and what an environment tells."""
        comparison, (expected, found) = self.comparison, (side.device for side in self.sides)
        comparison.equal("end", "whether there is a decision", not shown[0].over, not shown[1].over)
        comparison.views(shown[0].view, shown[1].view)
        comparison.costs(*self._both("costs", lambda side: side.device.costs), self.problem)
        comparison.equal("done", "done", bool(expected.done), bool(found.done))
        comparison.equal("time", "time_us", expected.time_us, found.time_us)
        comparison.told(shown[0].told, shown[1].told)
        self.outcome.features |= view_features(shown[0])

    def _check_unchanged(self, before: StepPair, command: Any) -> None:
        """A refused command has left both devices as they were."""
        self.outcome.features.add("refused commands")
        for was, now in zip(before, self._both("view", lambda side: side.now()), strict=True):
            self.comparison.repeats("refusal", f"after the refused {command}", _arrays(was.view), _arrays(now.view))

    def _compare_end(self) -> None:
        """What is left of an episode: timelines and metrics."""
        timelines = self._both("timeline", lambda side: side.device.timeline)
        self.comparison.timelines(*timelines)
        self.comparison.plain("metrics", "metrics", *self._both("metrics", self._metrics))
        features, counts = timeline_features(timelines[0], self.problem)
        self.outcome.features |= features
        self.outcome.counts += counts

    def _metrics(self, side: Side) -> dict[str, Any]:
        device = side.device
        end = (device.timeline, device.costs, device.time_us, device.done)
        return episode_metrics(Episode(self.problem, self.case.seed, *end, decisions=0, wall_s=0.0)).as_dict()

    def _play_again(self, deadlock: bool) -> None:
        """Check that the same commands from the snapshots on lead to the same end, to the last bit."""
        plan = self.case.snapshot
        assert plan is not None
        self.outcome.features.add("back to a snapshot")
        kept = [_record(side.device) for side in self.sides]
        if plan.fresh:
            saved = [pickle.loads(pickle.dumps(side.saved)) for side in self.sides]
            self.sides = self._sides()
            for side, state in zip(self.sides, saved, strict=True):
                side.saved = state
        self.comparison.phase = "played again from a snapshot: "
        self.comparison.step = plan.step
        deadlock_again = False
        try:
            self._look(self._both("restore", lambda side: side.restore()))
            for action in self.taken[plan.step :]:
                self.comparison.step += 1
                self._look(self._step(action))
        except DeadlockError:
            deadlock_again = True
        self.comparison.equal("restore", "a deadlock", deadlock, deadlock_again)
        for side, before in zip(self.sides, kept, strict=True):
            self.comparison.repeats("restore", "the first time and now", before, _record(side.device))


def _arrays(view: View) -> dict[str, Any]:
    """All fields, tables as arrays."""
    values = {f"view.{field.name}": getattr(view, field.name) for field in fields(View)}
    return {name: getattr(value, "array", value) for name, value in values.items()}


def _record(device: Device) -> dict[str, Any]:
    """Everything about a finished episode, as arrays and numbers by name."""
    costs, timeline = device.costs, device.timeline
    kept = {f"costs.{name}": np.array(getattr(costs, name)) for name in type(costs).__slots__}
    for name in (*TIMELINES, "sms"):
        columns = getattr(timeline, name)
        kept |= {f"timeline.{name}": columns.array, f"timeline.{name}, picoseconds": columns.exact}
    return kept | {"time_us": device.time_us, "done": float(device.done)}
