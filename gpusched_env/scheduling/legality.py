"""What makes a command illegal, on every device: read off what the device shows and what the scenario offers.

So the mask of an environment and a device's refusals cannot differ: both look at the same columns. What a scheduler
was given is never looked at again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import IllegalCommand
from gpusched_env.hardware.clock import to_ps
from gpusched_env.reading import LONGEST_US
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.commands import (
    MOST_PAUSE_US,
    Command,
    Launch,
    Partition,
    Preempt,
    Reject,
    Reshape,
    SetBudget,
    SetPartition,
    Synchronise,
    Throttle,
    Wait,
)
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.scheduling.plain import plain
from gpusched_env.scheduling.showing import Shown
from gpusched_env.scheduling.synchronising import pair_of, unfit, unguarded
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn
from gpusched_env.workload.cores.spec import MOST_EVENTS
from gpusched_env.workload.segments import conflict

OperationOf = Callable[[int], HostOp]
"""What an unfinished launch carries out, by its id."""


def check(command: Command, view: Shown, problem: Problem, operation_of: OperationOf) -> Command:
    """Whether ``command`` may be given where the device shows ``view``.

    Args:
        operation_of: asked only where a launch is refused that waits for another one, and of tiles.

    Returns:
        what is to be carried out: the command in plain numbers.

    Raises:
        IllegalCommand: names the command, why it is not legal now, and what would be.
    """
    command = plain(command)
    if isinstance(command, Wait):
        if not command.until_us >= view.time_us:
            raise IllegalCommand(f"{command}: until_us lies before the present time {view.time_us} us")
        if view.time_us + LONGEST_US < command.until_us < math.inf:
            raise IllegalCommand(
                f"{command}: until_us must be within {LONGEST_US:g} us, or inf: until something happens"
            )
        return command
    offered = problem.scenario.commands
    if command.NAME not in offered:
        raise IllegalCommand(f"{command}: scenario {problem.scenario.name} offers {', '.join(offered)} only")
    match command:
        case Launch():
            _launch(command, view, problem, operation_of)
        case Preempt():
            _preempt(command, view, problem)
        case SetPartition():
            _set_partition(command, view, problem)
        case Reject():
            _reject(command, view)
        case Synchronise():
            _synchronise(command, view, problem, operation_of)
        case Reshape():
            _reshape(command, view, problem)
        case Throttle():
            _throttle(command, view)
        case SetBudget():
            _set_budget(command, view)
    return command


def _launch(command: Launch, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
    pending = view.pending
    # Tables have a handful of rows, where plain lists beat NumPy's temporaries.
    ids = pending.array[:, PendingColumn.ID].tolist()
    row = ids.index(command.launch) if command.launch in ids else None
    if row is None or pending.array[row, PendingColumn.LAUNCHABLE] != 1.0:
        legal = pending.id[pending.launchable == 1.0].astype(int).tolist()
        why = _why_not(command.launch, view, problem, operation_of)
        raise IllegalCommand(f"{command}: {why}; launchable now: {legal[:10]}")
    lowest = 1 - problem.gpu.priorities
    if command.priority is not None and not lowest <= command.priority <= 0:
        raise IllegalCommand(f"{command}: stream priority must be in {lowest}..0 on {problem.gpu.name}")
    if command.stream is None and command.partition is None:
        return
    row = pending.array[row]
    if command.stream is not None and problem.streams[int(row[PendingColumn.STREAM])].windowed:
        open_ = open_streams(row, view, problem)
        if command.stream not in open_:
            raise IllegalCommand(f"{command}: the streams of the scheduler's own that may take it are {open_[:10]}")
    elif command.stream is not None and command.stream != row[PendingColumn.STREAM]:
        own = [number for number, stream in enumerate(problem.streams) if stream.tenant < 0]
        if command.stream not in own:
            raise IllegalCommand(f"{command}: the streams of the scheduler's own are {own}")
        if row[PendingColumn.PREEMPTED]:
            raise IllegalCommand(
                f"{command}: a preempted kernel goes back to its place in stream {row[PendingColumn.STREAM]:.0f}"
            )
    _partition(command, command.partition, view.sms)
    if command.partition is not None and problem.scenario.restart_us > 0.0:
        raise IllegalCommand(f"{command}: a partition is a process's own (restart_us); give SetPartition")


def open_streams(pending: NDArray[np.float64], view: Shown, problem: Problem) -> list[int]:
    """Rows of the scheduler's own streams that may take a launch of a window, a row of ``view.pending``, which is
    launchable."""
    assert problem.window is not None
    kept = view.pending.stream[view.pending.preempted == 1.0]
    held = Counter([*view.running.stream.astype(int).tolist(), *kept.astype(int).tolist()])
    older = view.dependencies.waits_for[view.dependencies.launch == pending[PendingColumn.ID]]
    behind = set(view.running.stream[np.isin(view.running.id, older)].astype(int).tolist())
    own = [number for number, stream in enumerate(problem.streams) if stream.tenant < 0]
    return [number for number in own if held[number] < problem.window.depth and behind <= {number}]


def _why_not(launch: int, view: Shown, problem: Problem, operation_of: OperationOf) -> str:
    """Why a launch is not launchable: in a window a hazard, or no stream has room."""
    streams = view.pending.stream[view.pending.id == launch]
    if not streams.size or not problem.streams[int(streams[0])].windowed:
        return f"launch {launch} is not launchable"
    older = view.dependencies.waits_for[view.dependencies.launch == launch]
    if not older.size:
        return f"launch {launch} must wait for room in a stream of the scheduler's own"
    first = int(older[0])
    hazard = conflict(operation_of(first), operation_of(launch))
    return f"launch {launch} must wait for launch {first}: {hazard}"


def _preempt(command: Preempt, view: Shown, problem: Problem) -> None:
    rows = np.flatnonzero(view.running.id == command.launch)
    if not rows.size or not view.running.started[rows[0]]:
        raise IllegalCommand(f"{command}: launch {command.launch} is not running")
    row = view.running.array[rows[0]]
    if row[RunningColumn.PREEMPTING]:
        raise IllegalCommand(f"{command}: launch {command.launch} is being preempted already")
    if row[RunningColumn.NODES] > 1:
        raise IllegalCommand(f"{command}: launch {command.launch} is a graph, which cannot be preempted")
    if not row[RunningColumn.PREEMPTIBLE]:
        raise IllegalCommand(f"{command}: launch {command.launch} was preempted at this instant already, or has ended")
    if command.mode == "reset" and not row[RunningColumn.IDEMPOTENT]:
        raise IllegalCommand(f"{command}: launch {command.launch} is not idempotent and cannot be reset")
    if command.partition is not None and command.mode != "save":
        raise IllegalCommand(f"{command}: only mode save can be confined to a partition")
    _partition(command, command.partition, view.sms)


def _tenant(command: SetPartition | Throttle, view: Shown) -> None:
    tenants = len(view.tenants)
    if not 0 <= command.tenant < tenants:
        raise IllegalCommand(f"{command}: tenants are 0..{tenants - 1}")


def _set_partition(command: SetPartition, view: Shown, problem: Problem) -> None:
    _tenant(command, view)
    _partition(command, command.partition, view.sms)
    row = view.tenants.array[command.tenant]
    first, sms = whole_or(command.partition, view.sms)
    if (first, sms) == (row[TenantColumn.PARTITION_FIRST], row[TenantColumn.PARTITION_SMS]):
        raise IllegalCommand(f"{command}: tenant {command.tenant} has this partition already")
    if not row[TenantColumn.PARTITIONABLE]:
        raise IllegalCommand(f"{command}: the partition of tenant {command.tenant} was set at this instant already")


def whole_or(partition: Partition | None, sms: int) -> tuple[int, int]:
    """First SM and number of SMs; all SMs are no confinement, in whatever order they are named."""
    return (0, sms) if partition is None or partition.sms == sms else (partition.first, partition.sms)


def _reject(command: Reject, view: Shown) -> None:
    jobs = view.jobs
    rows = np.flatnonzero((jobs.tenant == command.tenant) & (jobs.job == command.job))
    if not rows.size or not jobs.rejectable[rows[0]]:
        mine = (jobs.tenant == command.tenant) & (jobs.rejectable == 1.0)
        legal = jobs.job[mine].astype(int).tolist()
        raise IllegalCommand(
            f"{command}: tenant {command.tenant} has no job {command.job} that can be rejected now; "
            f"those are {legal[:10]}"
        )


def _throttle(command: Throttle, view: Shown) -> None:
    _tenant(command, view)
    pause_us = command.pause_us
    if not 0.0 <= pause_us <= MOST_PAUSE_US:
        raise IllegalCommand(f"{command}: pause_us must be a finite number of microseconds, 0 to {MOST_PAUSE_US:g}")
    row = view.tenants.array[command.tenant]
    if to_ps(pause_us) == to_ps(row[TenantColumn.PAUSE_US]):
        raise IllegalCommand(f"{command}: tenant {command.tenant} has this pause already")
    if not row[TenantColumn.THROTTLABLE]:
        raise IllegalCommand(f"{command}: tenant {command.tenant} was throttled at this instant already")


def _set_budget(command: SetBudget, view: Shown) -> None:
    cores, always = view.cores, command.always
    if not 0 <= command.core < len(cores):
        there_are = f"cores are 0..{len(cores) - 1}" if len(cores) else "there are no cores"
        raise IllegalCommand(f"{command}: {there_are}")
    if not 1 <= command.events <= MOST_EVENTS:
        raise IllegalCommand(f"{command}: events must be 1 to {MOST_EVENTS} (no regulation)")
    row = cores.array[command.core]
    if (command.events, always) == (row[CoreColumn.BUDGET], row[CoreColumn.ALWAYS]):
        raise IllegalCommand(f"{command}: core {command.core} has this budget already")
    if not row[CoreColumn.SETTABLE]:
        raise IllegalCommand(f"{command}: the budget of core {command.core} was set at this instant already")


def _synchronise(command: Synchronise, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
    pending = view.pending
    rows = np.flatnonzero(pending.id == command.consumer)
    if not rows.size or not pending.synchronisable[rows[0]]:
        legal = pending.id[pending.synchronisable == 1.0].astype(int).tolist()
        why = f"launch {command.consumer} needs no tiles, was launched, or it or its producer was synchronised before"
        if rows.size and pending.producer[rows[0]] in view.running.id[view.running.started == 1.0]:
            why = f"launch {pending.producer[rows[0]]:.0f}, whose tiles launch {command.consumer} needs, has started"
        if not rows.size:
            why = f"launch {command.consumer} is not pending"
        raise IllegalCommand(f"{command}: {why}; synchronisable now: {legal[:10]}")
    policy, kernels = command.policy, problem.kernels
    producer, consumer = int(pending.producer[rows[0]]), operation_of(command.consumer)
    made, used = (kernels[identity].kernel for identity in (operation_of(producer).identity, consumer.identity))
    pair = pair_of(policy, made, used, consumer.needs)
    wrong = unfit(policy, pair, consumer.needs)
    if wrong:
        raise IllegalCommand(f"{command}: {wrong}")
    early = unguarded(pair, consumer.needs.steps, policy.steps)
    if early is not None:
        raise IllegalCommand(
            f"{command}: policy {policy} is too weak: tile {early.tile} of launch {command.consumer} would read tile "
            f"{early.read} of launch {producer} in its step {early.step}, and waits for no post of that before"
        )


def _reshape(command: Reshape, view: Shown, problem: Problem) -> None:
    pending = view.pending
    rows = np.flatnonzero(pending.id == command.launch)
    if not rows.size:
        raise IllegalCommand(f"{command}: launch {command.launch} is not pending")
    count = int(pending.forms[rows[0]])
    if count == 0:
        legal = pending.id[pending.forms > 0.0].astype(int).tolist()
        # Graphs have identities behind those of kernels, and may hold a single node.
        identity = int(pending.identity[rows[0]])
        kernel = problem.kernels[identity] if identity < len(problem.kernels) else None
        why = "it was launched, or given a form, or its tiles were synchronised"
        if kernel is None or not kernel.forms:
            why = "its kernel has no other form"
        raise IllegalCommand(f"{command}: {why}; launches that may be given a form now: {legal[:10]}")
    if not 0 <= command.form < count:
        raise IllegalCommand(f"{command}: forms of launch {command.launch} are 0..{count - 1}")


def _partition(command: Command, partition: Partition | None, sms: int) -> None:
    if partition is not None and not (0 <= partition.first < sms and 1 <= partition.sms <= sms):
        raise IllegalCommand(f"{command}: a partition needs first in 0..{sms - 1} and sms in 1..{sms}")
