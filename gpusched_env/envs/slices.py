"""The slices of a flat action space, one declaration a command: what its actions are, when legal, and what they mean.

Action 0 waits. Behind it come the slices of the commands that a scenario offers, in the order of :data:`SLICES`. A
slice has *slots*, which are rows of one of the shown tables, and for each slot the same *choices*: pairs of whole
numbers ``a, b`` whose meaning is the command's own. Its actions are numbered slot by slot.

Where decisions stand for an interval, launching is no action: there is
:class:`~gpusched_env.planning.interval.Serve` instead, which no device knows, and action 0 goes by the plan. Where
tenants can be throttled, decisions for an interval are about the *knobs* of best-effort tenants instead: who sleeps how
long, and who has which SMs. Where budgets of CPU cores can be set, they are about these.

Of each command there are three functions in compiled code, of which masks, Python's commands, those of the compiled
device and the way back from a command to its action are all made. The first says whether a slot has something that the
command could be about; only then the others are called: one says whether an action is legal, one writes which
:data:`~gpusched_env.scheduling.legality.COMMAND_RECORD` it means. They take, in this order, the shown tables (as for
:func:`~gpusched_env.envs.encoding.encode`), the SMs of the GPU, the row of the first of the scheduler's own streams,
the action's slot, ``a`` and ``b``, and the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from gpusched_env.compiling import called
from gpusched_env.envs.action_fields import ActionFields
from gpusched_env.envs.encoding import ID, NO_KERNEL, producer_of
from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.tiles import KERNEL, MATRIX, NEEDS_SHARE, ROW, SHARE, STRIDED, TILE
from gpusched_env.planning.interval import Serve
from gpusched_env.scheduling import commands
from gpusched_env.scheduling.commands import COMMANDS, MODES, ORDERS, OWN_STREAM, POLICIES, Command
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn
from gpusched_env.workload.cores.spec import MOST_EVENTS
from gpusched_env.workload.kernel import MOST_FORMS

Choices = list[tuple[int, int]]
SlotKind = Literal["pending", "running", "tenant", "core"]
SLOT_KINDS: Final[tuple[SlotKind, ...]] = get_args(SlotKind)

RESET: Final = MODES.index("reset")
WHOLE: Final = 0
"""The choice ``b`` of a preemption of the whole kernel."""
OTHERS: Final = (0, 4, 16)
"""Choices ``a`` of letting a tenant go first: launches in flight of all others together."""
SERVE: Final = len(COMMANDS)
"""The code of :class:`~gpusched_env.planning.interval.Serve`."""
SLICE_CODES: Final[dict[type[Command | Serve], int]] = dict(zip((*COMMANDS, Serve), range(SERVE + 1), strict=True))
BY_ROW: Final = 0
FROM_FIRST: Final = 1
FROM_LAST: Final = 2
"""``b`` of a partition: where its SMs begin. By row: of even rows from rank 0, of odd ones from the other end."""
EIGHTHS: Final = 8
OLDEST: Final = 0
NEWEST: Final = 1
"""``a`` of a rejection."""


@called
def partition_sms(sms: int, quarters: int) -> int:
    """SMs of ``quarters`` quarters of a GPU with ``sms`` SMs, rounded down, at least one."""
    return max(1, sms * quarters // 4)


@called
def _partition_first(sms, quarters, row, where):
    """First SM of a partition. By row: even rows are counted from rank 0, odd rows from the other end."""
    at_end = row % 2 == 1 if where == BY_ROW else where == FROM_LAST
    return sms - partition_sms(sms, quarters) if at_end else 0


# ---- what slots may show ---------------------------------------------------------------------------------------------


@called
def _is_pending(pending, running, tenants, cores, slot):
    return pending[slot, ID] != NO_KERNEL


@called
def _is_running(pending, running, tenants, cores, slot):
    return running[slot, ID] != NO_KERNEL


@called
def _is_tenant(pending, running, tenants, cores, slot):
    return slot < tenants.shape[0]


@called
def _is_core(pending, running, tenants, cores, slot):
    return slot < cores.shape[0]


@called
def _is_rejectable(pending, running, tenants, cores, slot):
    return slot < tenants.shape[0] and tenants[slot, TenantColumn.NEWEST_REJECTABLE] >= 0.0


@called
def _is_synchronisable(pending, running, tenants, cores, slot):
    """Its producer, an older launch, has to be shown then."""
    shown = pending[slot, ID] != NO_KERNEL
    return shown and pending[slot, PendingColumn.SYNCHRONISABLE] == 1.0 and producer_of(pending, slot) >= 0


@called
def _launch_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: stream priority; ``b``: number of the scheduler's stream, -1: its own."""
    # A preempted kernel goes back to its place.
    free = b == OWN_STREAM or pending[slot, PendingColumn.PREEMPTED] == 0.0
    return pending[slot, PendingColumn.LAUNCHABLE] == 1.0 and free and not _takes_slots(pending, running, slot, a)


@called
def _takes_slots(pending, running, slot, priority):
    """Whether a consumer that is synchronised would be launched before its producer, or go before it: then it can take
    the slots that its producer needs, and nothing would ever happen any more. A device lets a scheduler do so."""
    producer = pending[slot, PendingColumn.PRODUCER]
    if pending[slot, PendingColumn.POLICY] == KERNEL or producer < 0.0:
        return False
    if producer_of(pending, slot) >= 0:
        return True
    for row in range(running.shape[0]):
        if running[row, ID] == producer:
            return priority < running[row, RunningColumn.STREAM_PRIORITY]
    # It is launched, in a row that is not shown: none is less urgent than the default.
    return priority < 0


@called
def _launch_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    given.launch = int(pending[slot, ID])
    given.priority = a
    given.stream = OWN_STREAM if b == OWN_STREAM else own + b
    given.first_sm = given.sms = 0


@called
def _serve_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: launches in flight of all others."""
    return tenants[slot, TenantColumn.JOBS_WAITING] > 0.0


@called
def _preempt_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: mode; ``b``: quarters of the SMs that are saved, or the whole kernel."""
    may_reset = running[slot, RunningColumn.IDEMPOTENT] == 1.0
    return running[slot, RunningColumn.PREEMPTIBLE] == 1.0 and (a != RESET or may_reset)


@called
def _preempt_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    given.launch = int(running[slot, ID])
    given.mode = a
    # The SMs that are freed lie away from those that the kernel's tenant is confined to.
    other_side = int(running[slot, RunningColumn.TENANT]) + 1
    given.first_sm = 0 if b == WHOLE else _partition_first(sms, b, other_side, BY_ROW)
    given.sms = 0 if b == WHOLE else partition_sms(sms, b)


def _preempt_choices(layout: ActionFields) -> Choices:
    parts = {"save-part": ("save", (1, 2, 3))}
    chosen = [parts.get(mode, (mode, (WHOLE,))) for mode in layout.modes]
    return [(MODES.index(mode), quarters) for mode, sizes in chosen for quarters in sizes]


@called
def _partition_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: quarters of the SMs; ``b``: where they begin."""
    has_first = tenants[slot, TenantColumn.PARTITION_FIRST] == _partition_first(sms, a, slot, b)
    is_new = not has_first or tenants[slot, TenantColumn.PARTITION_SMS] != partition_sms(sms, a)
    may_choose = b == BY_ROW or tenants[slot, TenantColumn.SLO_US] == math.inf
    return may_choose and tenants[slot, TenantColumn.PARTITIONABLE] == 1.0 and is_new


@called
def _partition_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    size = partition_sms(sms, a)
    given.tenant = slot
    given.first_sm = _partition_first(sms, a, slot, b) if size < sms else 0
    given.sms = size if size < sms else 0


def _partition_choices(layout: ActionFields) -> Choices:
    if not layout.knobs or not layout.quarters:
        return [(a, BY_ROW) for a in layout.quarters]
    *parts, whole = layout.quarters
    return [*((a, b) for b in (FROM_FIRST, FROM_LAST) for a in parts), (whole, FROM_FIRST)]


@called
def _pause_ps(tenants, slot, eighths):
    return to_ps(tenants[slot, TenantColumn.ALONE_US] * eighths / EIGHTHS)


@called
def _throttle_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: the pause, in eighths of a job's time alone."""
    is_new = to_ps(tenants[slot, TenantColumn.PAUSE_US]) != _pause_ps(tenants, slot, a)
    best_effort = tenants[slot, TenantColumn.SLO_US] == math.inf
    return best_effort and tenants[slot, TenantColumn.THROTTLABLE] == 1.0 and is_new


@called
def _throttle_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    given.tenant = slot
    given.pause_ps = _pause_ps(tenants, slot, a)


@called
def _budget_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: misses in a period; the budget binds while a lock counts."""
    is_new = cores[slot, CoreColumn.BUDGET] != a or cores[slot, CoreColumn.ALWAYS] == 1.0
    # Without processes there is nothing that a budget could hold back.
    return cores[slot, CoreColumn.TASKS] > 0.0 and cores[slot, CoreColumn.SETTABLE] == 1.0 and is_new


@called
def _budget_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    given.core = slot
    given.events = a
    given.always = 0


@called
def _reject_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: which of a tenant's jobs."""
    # One job is not offered twice.
    only = tenants[slot, TenantColumn.NEWEST_REJECTABLE] == tenants[slot, TenantColumn.OLDEST_REJECTABLE]
    return a == OLDEST or not only


@called
def _reject_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    given.tenant = slot
    given.job = int(tenants[slot, TenantColumn.OLDEST_REJECTABLE if a == OLDEST else TenantColumn.NEWEST_REJECTABLE])


@called
def _reshape_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: which of the kernel's forms."""
    return a < pending[slot, PendingColumn.FORMS]


@called
def _reshape_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    given.launch = int(pending[slot, ID])
    given.form = a


@called
def _synchronise_legal(pending, running, tenants, cores, sms, own, slot, a, b):
    """``a``: policy; ``b``: twice the order, and 1 more for a wait kernel."""
    # A producer that waits for something itself may start behind a consumer that no wait kernel keeps back.
    safe = b % 2 == 1 or pending[producer_of(pending, slot), PendingColumn.UPSTREAM] <= 0.0
    # One that needs a share of the tiles waits once, as a row does.
    return safe and (a == ROW or pending[slot, PendingColumn.NEEDS] != NEEDS_SHARE)


@called
def _synchronise_means(pending, running, tenants, cores, sms, own, slot, a, b, given):
    policy, size = a, 1
    if pending[slot, PendingColumn.NEEDS] == NEEDS_SHARE:
        policy = SHARE
    elif a == TILE:
        size = int(pending[slot, PendingColumn.STEPS])
    elif a == STRIDED:
        columns = pending[producer_of(pending, slot), PendingColumn.COLUMNS]
        size = int(columns // pending[slot, PendingColumn.FOLD])
    given.launch = int(pending[slot, ID])
    given.policy = policy
    given.policy_size = size
    # Loads that need nothing of the producer come first: that costs nothing.
    given.reorder = 1
    given.order = b // 2
    given.wait_kernel = b % 2


def _synchronise_choices(layout: ActionFields) -> Choices:
    ways = range(2 * len(ORDERS)) if layout.synchronises else ()
    return [(a, b) for a in (ROW, TILE, STRIDED, MATRIX) for b in ways]


# ---- all of them -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slice:
    """One command's part of an action space."""

    command: type[Command | Serve]
    slots: SlotKind
    """Whose rows its slots are: pending or running launches, tenants, or CPU cores."""
    shows: Callable[..., Any]
    """Compiled: whether a slot has something that the command could be about."""
    legal: Callable[..., Any]
    """Whether an action is legal, compiled."""
    means: Callable[..., Any] | None
    """What writes the meaning of an action, compiled; none where no device knows the command."""
    choices: Callable[[ActionFields], Choices]
    """What there is to choose for each slot, in order; nothing where the command is not on offer."""
    subject: str
    """What its actions do, with the slot as ``{}``."""
    words: Callable[[int, int], str]
    """What puts a choice into words."""
    label: Callable[[int, int], str]
    """What gives the name under which its actions are counted."""


SLICES: Final = (
    Slice(
        Serve, "tenant", _is_tenant, _serve_legal, None,
        lambda layout: [(a, 0) for a in OTHERS if layout.serves], "let {} go first",
        lambda a, b: f"{a} launches of all others in flight",
        lambda a, b: f"others_{a}",
    ),
    Slice(
        commands.Launch, "pending", _is_pending, _launch_legal, _launch_means,
        lambda layout: [(a, b) for b in range(OWN_STREAM, layout.streams) for a in layout.stream_priorities],
        "launch {}",
        lambda a, b: f"stream priority {a}" + ("" if b == OWN_STREAM else f" in the scheduler's stream {b}"),
        lambda a, b: f"priority_{a}",
    ),
    Slice(
        commands.Preempt, "running", _is_running, _preempt_legal, _preempt_means, _preempt_choices, "preempt {}",
        lambda a, b: MODES[a] if b == WHOLE else f"{MODES[a]} on {b}/4 of the SMs",
        lambda a, b: MODES[a] if b == WHOLE else "save-part",
    ),
    Slice(
        commands.SetPartition, "tenant", _is_tenant, _partition_legal, _partition_means, _partition_choices,
        "confine {}",
        lambda a, b: f"{a}/4 of the SMs" + ("", " from the first on", " up to the last")[b if a < 4 else BY_ROW],
        lambda a, b: f"{a}_of_4" + ("", "", "_last")[b],
    ),
    Slice(
        commands.Reject, "tenant", _is_rejectable, _reject_legal, _reject_means,
        lambda layout: [(a, 0) for a in (OLDEST, NEWEST) if layout.rejects], "reject a job of {}",
        lambda a, b: "the oldest" if a == OLDEST else "the newest",
        lambda a, b: "oldest" if a == OLDEST else "newest",
    ),
    Slice(
        commands.Reshape, "pending", _is_pending, _reshape_legal, _reshape_means,
        lambda layout: [(a, 0) for a in range(MOST_FORMS) if layout.reshapes], "reshape {}",
        lambda a, b: f"form {a}",
        lambda a, b: f"form_{a}",
    ),
    Slice(
        commands.Synchronise, "pending", _is_synchronisable, _synchronise_legal, _synchronise_means,
        _synchronise_choices, "synchronise the tiles of {}",
        lambda a, b: f"by {POLICIES[a]}, order {ORDERS[b // 2]}" + (", with a wait kernel" if b % 2 else ""),
        lambda a, b: POLICIES[a],
    ),
    Slice(
        commands.Throttle, "tenant", _is_tenant, _throttle_legal, _throttle_means,
        lambda layout: [(a, 0) for a in layout.pauses], "let {} sleep before each job",
        lambda a, b: f"{a / EIGHTHS:g} times its time alone",
        lambda a, b: f"sleep_{a / EIGHTHS:g}",
    ),
    Slice(
        commands.SetBudget, "core", _is_core, _budget_legal, _budget_means,
        lambda layout: [(a, 0) for a in layout.budgets], "set the budget of {}",
        lambda a, b: f"{a} misses a period" if a < MOST_EVENTS else "no regulation",
        lambda a, b: f"budget_{a}" if a < MOST_EVENTS else "unregulated",
    ),
)  # fmt: skip
"""All slices, in the order of the action numbers."""


@called
def _never(code, *arguments):
    return False


def _or(number: int, function: Callable[..., Any], otherwise: Callable[..., Any]) -> Any:
    """A compiled function that calls ``function`` for the command of code ``number``, and ``otherwise`` for others."""

    @called
    def choose(code, *arguments):
        return function(*arguments) if code == number else otherwise(code, *arguments)

    return choose


shows: Any = _never
legal: Any = _never
means: Any = _never
"""What there is of a command of the slices, by its code: each takes that, and what the slice's own function takes."""
for _slice in reversed(SLICES):
    shows = _or(SLICE_CODES[_slice.command], _slice.shows, shows)
    legal = _or(SLICE_CODES[_slice.command], _slice.legal, legal)
    if _slice.means is not None:
        means = _or(SLICE_CODES[_slice.command], _slice.means, means)
