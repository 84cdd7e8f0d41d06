"""The device with a real GPU behind it.

Tenants' hosts, streams and the scheduler's side are those of the compiled device, whose time is the real one: host
threads take the time of their recordings, and are late only where this process is. What a scheduler launches goes to
the GPU at once, which keeps it waiting for what is before it (where preemption is offered not all of it goes at once:
:mod:`~gpusched_env.devices.cuda.gpu`); starts and ends are what the GPU reports. Deciding takes the time that it
takes (:attr:`RealDevice.decisions_us`), and so does handing over.
"""

from __future__ import annotations

import contextlib
from array import array
from types import TracebackType
from typing import Any, Final, Self, cast

import numpy as np
from numba import types

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.device import SENT_COLUMNS, CompiledDevice, take_sent
from gpusched_env.devices.compiled.entry import empty_outbox
from gpusched_env.devices.compiled.entry import report as tell
from gpusched_env.devices.cuda.gpu import DrivenGpu, Gpu, GpuWork, RecallableQueue, Report
from gpusched_env.devices.cuda.real_time.run import Decider, IntervalRun
from gpusched_env.devices.cuda.real_time.tables import COMMANDED, GOES_ON
from gpusched_env.errors import GpuschedError, IllegalCommand, InputError
from gpusched_env.hardware.clock import NEVER, to_ps, to_us
from gpusched_env.planning.dispatcher import DISPATCHED, DecidesForIntervals
from gpusched_env.scenarios.adapting import in_real_time
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import CommandName, Scenario
from gpusched_env.scheduling.commands import Command, Preempt, Reject
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View

TELL: Final = (types.int64, types.int64, types.Array(types.int64, 2, "C"), types.int64, types.int64)
"""Signature of :func:`tell`."""
NO_ROWS: Final = np.empty((0, SENT_COLUMNS), np.int64)
DRAIN_ONLY: Final = ("drain",)
"""``preemption`` of scenarios that offer ``preempt`` on a real GPU."""
NO_WAY_BACK = "a real GPU cannot go back: snapshots are for the simulated devices"
NOT_FROM_OUTSIDE = "tenants of a real GPU do not come and go from outside; those of simulated devices do"


class RealDevice(CompiledDevice):
    """One real GPU with its tenants (see :class:`gpusched_env.scheduling.contract.Device`).

    Its timeline has jobs, kernels, copies and decisions, and at the end the blocks of kernels that are not in graphs.
    Costs have jobs and makespan; nothing counts busy SMs, traffic and energy. Used in a ``with`` statement it gives the
    GPU back at the end.
    """

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self._gpu = gpu
        self._handing: RecallableQueue | None = None
        """What hands launches over where they may be preempted."""
        self._slots: dict[int, int] = {}
        """Slots of the launches that were handed over, by id."""
        self._blocks = False
        self._free_ps = 0
        """When the host was last done with a decision, or had waited."""
        self.launches_us = array("d")
        """Time that each launch took of those that compiled code launched (:meth:`drive`)."""
        self.intervals_us = array("d")
        """How long each decision for an interval took where compiled code launches; it keeps no launch waiting."""
        self.decisions_us = array("d")
        """Real time of every decision since the reset: hearing from the GPU, the view, deciding and handing over. It is
        what ``decision_us`` of a scenario stands for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the GPU back; nothing is left on it."""
        self._gpu.stop()
        self._gpu.close()

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Start an episode and run to the first decision epoch (``None``: it ended before one).

        Raises:
            InputError: snapshots are asked for; the problem has what a real GPU does not do.
            GpuError: the GPU or its driver has failed.
        """
        if snapshots:
            raise InputError(NO_WAY_BACK)
        self._begin(problem, seed, record)
        self._gpu.start()
        return self.advance()

    def _begin(self, problem: Problem, seed: int, record: Detail) -> None:
        """Begin an episode whose time does not run yet."""
        check(problem)
        self._horizon_ps = to_ps(problem.scenario.horizon_us)
        self._gpu.stop()
        self._blocks = record == "blocks"
        self._gpu.prepare(problem, blocks=self._blocks)
        self._handing = RecallableQueue(self._gpu) if "preempt" in problem.scenario.commands else None
        self._slots.clear()
        self.decisions_us, self.launches_us, self.intervals_us = array("d"), array("d"), array("d")
        self._free_ps = 0
        self._showing.change()
        self.arena.reset(in_real_time(problem), seed, record)
        self.arena.env["external"] = 1
        self._compile()

    def _compile(self) -> None:
        """Compile what an episode calls, before time runs."""
        cast("Any", tell).compile(TELL)
        empty_outbox(self.arena.address, NO_ROWS)
        self._drive(running=False)
        self.view()

    def apply(self, command: Command) -> None:
        """Carry out one command; a refused one changes nothing.

        Raises:
            IllegalCommand: names the command and why it is not legal now.
            GpuError: the GPU or its driver has failed.
        """
        if isinstance(command, Preempt) and command.mode != "drain":
            raise IllegalCommand(f"{command}: a real GPU's blocks can only be drained")
        super().apply(command)
        if isinstance(command, Reject) and self._handing is not None:
            self._handing.keep(set(self.arena.section("launches")["id"].tolist()))
        self._send()
        now_ps = self._gpu.now_ps()
        self.decisions_us.append(to_us(now_ps - self._free_ps))
        self._free_ps = now_ps

    def advance(self) -> View | None:
        """The view for the next decision, or ``None`` at the end of the episode."""
        while True:
            # In this order: what is reported later has happened later.
            now_ps = self._gpu.now_ps()
            reason = self._hear((self._handing or self._gpu).poll(), now_ps)
            self._send()
            if reason == layout.DECIDE:
                self._showing.change()
                return self._showing.view()
            if reason == layout.OVER:
                self._end()
                return None
            due_ps = int(self.arena.env["due_ps"])
            if due_ps == NEVER and not self._busy():
                self._end()
                raise self.deadlock()
            self._gpu.pause(min(due_ps, self._horizon_ps))
            self._free_ps = self._gpu.now_ps()

    def drives(self, scheduler: Scheduler, problem: Problem) -> bool:
        """Whether compiled code can launch between two decisions of a scheduler."""
        return (
            isinstance(self._gpu, DrivenGpu)
            and isinstance(scheduler, DecidesForIntervals)
            and scheduler.dispatcher is not None
            and set(problem.scenario.commands) <= set(DISPATCHED)
            and all(stream.mask is None for stream in problem.streams)
        )

    def drive(self, scheduler: Scheduler, problem: Problem, seed: int, *, record: Detail = "jobs") -> int:
        """Play an episode of a scheduler that decides for intervals (:meth:`drives`); all else as :meth:`reset`."""
        assert isinstance(self._gpu, DrivenGpu), "drives() says so"
        assert isinstance(scheduler, DecidesForIntervals)
        assert scheduler.dispatcher is not None
        if record == "blocks":
            raise InputError("blocks are not recorded where compiled code launches; record='kernels' records none")
        self._begin(problem, seed, record)
        tables = self._gpu.tables(problem, self.arena.operations)
        with Decider(scheduler, problem) as decider:
            run = IntervalRun(self.arena, self._drive_at, scheduler.dispatcher, tables, decider)
            self._gpu.start()
            run.start(*self._gpu.clock_ns)
            while (reason := run.go()) not in (layout.OVER, layout.DEADLOCK):
                self._showing.change()
                if reason == GOES_ON:
                    continue
                if reason == COMMANDED:
                    # What was possible when it was asked may not be any more.
                    with contextlib.suppress(IllegalCommand):
                        super().apply(decider.take_command())
                    run.note_command()
                elif reason < 0:
                    raise run.failure(reason)
                else:
                    self.arena.serve(reason)
        self._showing.change()
        self._end()
        if reason == layout.DEADLOCK:
            raise self.deadlock()
        self.decisions_us, self.launches_us = array("d", run.took_us), array("d", run.launches_us)
        self.intervals_us = array("d", run.intervals_us)
        return run.commands

    def _busy(self) -> bool:
        """Whether anything is on the GPU."""
        return bool(self._slots) if self._handing is None else self._handing.busy

    def _end(self) -> None:
        """End the episode: nothing more is asked of the GPU."""
        if self._blocks:
            rows = self._gpu.blocks()
            ones = np.ones((len(rows), 1), np.int64)
            self.arena.timeline.blocks.extend(np.hstack([rows[:, :2], ones, rows[:, 2:]]), np.empty((len(rows), 0)))
        self._gpu.stop()

    def _hear(self, reports: list[Report], now_ps: int) -> int:
        """Let happen what is reported, and what is due up to now; returns why the event loop stopped."""
        rows = np.array([(r.at_ps, self._slot_of(r), r.ended, r.left) for r in reports], np.int64).reshape(-1, 4)
        # Two clocks are compared: a report may be a little ahead.
        now_ps = max(now_ps, reports[-1].at_ps if reports else 0)
        row = 0
        while True:
            row, reason = tell(self.arena.address, self._drive_at, rows, row, now_ps)
            if reason in (layout.OVER, layout.DECIDE, layout.IDLE):
                return int(reason)
            self.arena.serve(reason)

    def _slot_of(self, report: Report) -> int:
        """The slot of the launch of a report; one that has ended is not on the GPU any more."""
        return self._slots.pop(report.launch) if report.ended else self._slots[report.launch]

    def _send(self) -> None:
        """Hand over what was launched since, and call back what was preempted."""
        for sent in take_sent(self.arena, every=self._handing is not None):
            if sent.recalled:
                cast("RecallableQueue", self._handing).recall(sent.launch)
                continue
            self._slots[sent.launch] = sent.slot
            op = self.arena.operation(sent.op)
            sms = (sent.first, sent.sms) if sent.sms < self.arena.problem.gpu.sms else None
            work = GpuWork(sent.launch, op, sent.stream, sent.priority, sms, sent.after, sent.blocks)
            (self._handing or self._gpu).submit(work)

    def come(self, tenant: int, jobs: int | None = None) -> None:
        """Refuse that a tenant comes from outside: not possible on a real GPU."""
        raise GpuschedError(NOT_FROM_OUTSIDE)

    def go(self, tenant: int) -> None:
        """Refuse that a tenant goes: not possible on a real GPU."""
        raise GpuschedError(NOT_FROM_OUTSIDE)

    def snapshot(self) -> Any:
        """Refuse a snapshot: not possible on a real GPU."""
        raise GpuschedError(NO_WAY_BACK)

    def restore(self, snapshot: Any) -> View | None:
        """Refuse to go back to a snapshot: not possible on a real GPU."""
        raise GpuschedError(NO_WAY_BACK)


def offered(scenario: Scenario) -> tuple[CommandName, ...]:
    """The commands of a scenario that a real GPU takes."""
    return tuple(name for name in scenario.commands if name != "preempt" or scenario.preemption == DRAIN_ONLY)


def check(problem: Problem) -> None:
    """Whether a real GPU can play a problem.

    Raises:
        InputError: names what it cannot.
    """
    scenario = problem.scenario
    if scenario.contexts != "shared":
        raise InputError(
            f"{scenario.name}: tenants with contexts of their own need processes of their own; this device has one"
        )
    if "preempt" in scenario.commands and scenario.preemption != DRAIN_ONLY:
        raise InputError(
            f"{scenario.name}: a real GPU's blocks can only be drained; with the command 'preempt' the scenario needs "
            f"preemption: [drain]"
        )
    for tenant in scenario.tenants:
        if "preempt" in scenario.commands and tenant.kernels == "library":
            raise InputError(
                f"{scenario.name}, tenant {tenant.name}: blocks of library kernels look for no preemption; "
                "with the command 'preempt' its kernels must be synthetic"
            )
    if "reshape" in scenario.commands and any(profile.forms for profile in problem.kernels):
        raise InputError(
            f"{scenario.name}: kernels have no other forms on this device; give commands without 'reshape'"
        )
    for program in problem.programs:
        for op in (op for job in program.variants for op in job):
            if op.children or op.tiles >= 0:
                what = "launches kernels from the device" if op.children else "waits for tiles"
                raise InputError(
                    f"{scenario.name}, tenant {program.tenant.name}: a kernel {what}; this device has none of that"
                )
