"""What a scheduler may tell a device. Illegal commands are refused and change nothing.

Each command is declared here once: its name in scenarios, its fields, its code (its place in :data:`COMMANDS`), and
the numbers in which compiled code, timelines and action spaces know it. What makes it illegal is in
:mod:`~gpusched_env.scheduling.legality`, its share of an action space in :mod:`gpusched_env.envs.slices`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple

from gpusched_env.hardware.clock import to_ps, to_us
from gpusched_env.workload.cores.spec import MOST_EVENTS

PreemptionMode = Literal["drain", "save", "reset"]
"""``drain``: hand out no further blocks, running ones finish; ``save``: running blocks are written to
memory and continue later; ``reset``: running blocks are killed and the kernel starts over
(idempotent kernels only)."""
MODES: Final[tuple[PreemptionMode, ...]] = ("drain", "save", "reset")
"""By code."""


class Numbers(NamedTuple):
    """A command in numbers: what compiled code carries out."""

    code: int
    target: int = -1
    """Id of the launch that it is about, or row of the tenant."""
    choice: int = 0
    """Stream priority, preemption mode, job, pause in picoseconds, misses a period, place of a form, or (twice) the
    code of a policy, and 1 more where it reorders loads."""
    stream: int = -1
    """Row of the stream, -1: the launch's own; or the code of an order."""
    first: int = 0
    """Of a partition; or the stride of a policy, or its steps; or whether a budget binds always."""
    sms: int = 0
    """Of a partition, 0: none; or whether there is a wait kernel."""
    until_us: float = math.inf


@dataclass(frozen=True, slots=True)
class Partition:
    """A contiguous range of SMs in placement order, wrapping around at the end."""

    first: int
    """First SM, rank in placement order."""
    sms: int
    """Number of SMs (>= 1)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Hand a pending launch (a kernel, or a graph as a whole) to a stream.

    It starts when it has reached the device and everything that it waits for has ended: what was launched into the
    same stream before it, what its program's order and events put before it. A kernel that was preempted goes back
    to its place (and continues, or restarts after a reset) when it is launched again.

    A stream has a sub-stream for each priority, as CUDA's streams have fixed ones: a launch at another priority than
    the one before it waits for that by an event, which takes longer. A stream of the scheduler's own may have a mask of
    SMs (``SetUp.streams``). The GPU is told once of a partition: a launch with one that is neither its stream's nor,
    where that has none, its tenant's keeps the host busy as :class:`SetPartition` does.

    Legal: ``view.pending.launchable`` is 1: nothing that it waits for is pending itself. The priority is one
    that the GPU has. A stream is its own or one of the scheduler's; a preempted kernel goes back to its own. A
    partition is its tenant's where the scenario says ``restart_us``.

    Cost: ``launch_latency_us`` from the decision to the start on an idle stream. At another priority than the
    launch before it in its stream, and in another stream than what it has to wait for, ``event_latency_us`` after that
    one ended. With a partition of its own, ``partition_change_us`` of host time.
    """

    NAME: ClassVar = "launch"
    VERB: ClassVar = "launch"

    launch: int
    """Launch id: ``view.pending.id``."""
    priority: int | None = None
    """Stream priority, CUDA's convention: 0 is the default, lower is more urgent; ``None``: its stream's."""
    partition: Partition | None = None
    """SMs that may hold its blocks; ``None``: its stream's mask, or else its tenant's partition (by default the whole
    GPU)."""
    stream: int | None = None
    """Row of ``Knowledge.streams``: its own stream (``None``) or one of the scheduler's."""


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take a running kernel off the GPU, or off some SMs only.

    The whole kernel becomes pending again, and goes on when it is launched again. At one instant that can be done
    once to a kernel: where nothing takes time, launching and preempting could otherwise go on for ever.

    With a ``partition`` (mode ``save`` only), those of its blocks that are resident there when the command takes
    effect stop, and hold their SMs while their registers and shared memory are written out; the kernel's other
    blocks go on, and it stays launched. Then the room is free, and the saved blocks are read back, which takes as
    long again; until that is done the kernel hands out no blocks. After that it is dispatched like any other
    kernel, the saved blocks before those that never ran: what waits at a more urgent stream priority gets the room
    first. It can be preempted again as soon as the save is over. Where no block of it is resident nothing happens.
    Gilman and Walls (Performance 2021) propose this as fine-grained preemption.

    Graphs are units and cannot be preempted.

    Legal: ``view.running.preemptible`` is 1: it has started, is no graph, no preemption of it is under way, and
    none was commanded at this instant. ``reset`` also needs ``idempotent``, a ``partition`` the mode ``save``.

    Cost: ``drain``: ``drain_ack_us``, and the time until resident blocks end. ``save``: that request, and the
    time to write registers and shared memory of the resident blocks to DRAM; reading them back takes as long.
    ``reset``: ``reset_us``, and all that the kernel did.
    """

    NAME: ClassVar = "preempt"
    VERB: ClassVar = "preempt"

    launch: int
    """Launch id: ``view.running.id``."""
    mode: PreemptionMode
    """``drain``: its running blocks finish; ``save``: they are written to memory and continue later; ``reset``: they
    are killed, and it starts over."""
    partition: Partition | None = None
    """SMs whose blocks of the kernel are saved; ``None``: all of the kernel."""


@dataclass(frozen=True, slots=True)
class SetPartition:
    """Confine the kernels that a tenant launches from now on to some SMs; once at one instant.

    Partitions may overlap, and have more SMs together than the GPU: then blocks of several tenants share SMs. Where the
    scenario says ``restart_us``, the tenant is a process that is started anew: its job in service ends, and the next
    one begins so much later.

    Legal: ``view.tenants.partitionable`` is 1: not set at this instant already. The partition is another than
    the present one, and lies within the GPU's SMs.

    Cost: ``partition_change_us`` of host time, and ``restart_us`` of the scenario of the tenant's; nothing before the
    first launch of the episode.
    """

    NAME: ClassVar = "partition"
    VERB: ClassVar = "confine a tenant"

    tenant: int
    """Row of ``view.tenants``."""
    partition: Partition | None
    """``None``: the whole GPU."""


@dataclass(frozen=True, slots=True)
class Reject:
    """Shed load: a job is given up.

    Its pending launches vanish, its host goes on to the next job, what is launched finishes. The job counts as one
    that missed its objective, and costs at once what it would have cost if it had stayed undone until the horizon
    (:mod:`gpusched_env.scheduling.reward`), so that giving up never pays by itself.

    Legal: ``view.jobs.rejectable`` is 1, which is nowhere so if the scenario does not offer ``reject``. The
    oldest and the newest such job of each tenant are in ``view.tenants``.

    Cost: at once what the job would have cost had it stayed undone until the horizon, and its objective counts
    as missed. Nothing on the GPU; what is launched of it finishes.
    """

    NAME: ClassVar = "reject"
    VERB: ClassVar = "reject a job"

    tenant: int
    """Row of ``view.tenants``."""
    job: int
    """Number of the job: ``view.jobs.job``."""


PolicyKind = Literal["share", "row", "tile", "strided", "matrix"]
POLICIES: Final = ("kernel", "share", "row", "tile", "strided", "matrix")
"""Policies by code (:mod:`gpusched_env.hardware.tiles`); ``kernel`` is stream order, which needs no command."""
TileOrder = Literal["native", "row-major", "grouped", "column-major"]
ORDERS: Final[tuple[TileOrder, ...]] = ("native", "row-major", "grouped", "column-major")
"""By code."""


@dataclass(frozen=True, slots=True)
class TilePolicy:
    """For which posts of its producer a block waits."""

    kind: PolicyKind
    """``row``: for all tiles of its row, once; ``tile``: before each step for the tiles that this reads; ``strided``:
    for all tiles of the row that are ``stride`` apart, group by group; ``matrix``: for all tiles of its row of each
    matrix that it reads, of those that the producer has side by side; ``share``: for so many tiles, whichever they
    are."""
    stride: int = 1
    """Of ``strided``: divides the steps through a row."""
    steps: int = 1
    """Of ``tile``: steps of the consumer's inner loop that read one tile (see :func:`conv2d`)."""
    reorder: bool = False
    """Whether a block first does what needs nothing of the producer, such as loads of its other operand."""

    def __str__(self) -> str:
        size = {"strided": f"({self.stride})", "tile": f"({self.steps} steps)" if self.steps > 1 else ""}
        return self.kind + size.get(self.kind, "") + (", loads reordered" if self.reorder else "")


def conv2d(rows: int, columns: int, *, reorder: bool = False) -> TilePolicy:
    """The policy by tiles of a convolution as a matrix product: ``rows * columns`` steps read a tile, and the first of
    them waits (cuSync's Conv2DTileSync)."""
    return TilePolicy("tile", steps=rows * columns, reorder=reorder)


@dataclass(frozen=True, slots=True)
class Synchronise:
    """Let a kernel run beside the one whose tiles it needs: its blocks wait for tiles, and it no longer for all of it.

    A block of the producer posts when it has ended (of several slices of a tile the last one, and they end in order). A
    block of the consumer works up to the first step whose semaphore was not posted, holds its slot, and goes on when it
    is. Without this command a consumer starts behind its producer (policy ``kernel``, stream order). Jangda et al.
    (cuSync, CGO 2024).

    Legal: ``view.pending.synchronisable`` is 1: it needs the tiles of a kernel (``view.pending.producer``) of another
    stream, it was never launched and no block of that has started, and neither this one nor another consumer of that
    kernel was synchronised before. The policy fits the grids, and covers what the consumer needs.

    Cost: no time of the GPU's host but that of the decision. A block takes ``post_us`` longer to post, ``wait_us`` for
    each wait, and ``order_us`` in an order that is not ``native``; a wait kernel ``wait_kernel_us``.
    """

    NAME: ClassVar = "synchronise"
    VERB: ClassVar = "synchronise tiles"

    consumer: int
    """Launch id: ``view.pending.id``."""
    policy: TilePolicy
    """For which posts its blocks wait."""
    order: TileOrder = "native"
    """In which order blocks of both kernels take their tiles: ``native`` as the GPU hands them out; the others from a
    counter: ``row-major`` likewise; ``grouped``, where the consumer reads several matrices side by side: those of the
    producer's tiles that it reads together one after the other; ``column-major``: rows fastest. A kernel in two pairs
    has the order that it was given last."""
    wait_kernel: bool = False
    """Whether a kernel of one thread keeps the consumer back until a block of the producer has started. Without one,
    blocks of a consumer that is launched too early take the slots that its producer needs."""


@dataclass(frozen=True, slots=True)
class Reshape:
    """Let a kernel do its work in another form: with other tiles, or another number of slices that share a tile's work.

    cuSync's users choose both when they compile a kernel. Here the compiled forms are there, and one is named before
    the launch. From then on the launch is a kernel of that form: its grid, its blocks, its profile.

    Legal: ``view.pending.forms`` says how many forms it may be given: 0 where its kernel has none, it was launched or
    given one before, or its tiles or its producer's were synchronised for it, or it passes a window.

    Cost: no time of the GPU's host but that of the decision.
    """

    NAME: ClassVar = "reshape"
    VERB: ClassVar = "reshape a kernel"

    launch: int
    """Launch id: ``view.pending.id``."""
    form: int
    """Place in ``Knowledge.kernels[identity].forms``, from 0."""


MOST_PAUSE_US: Final = 3.6e9
"""An hour: what a host may be told to sleep at most, so that sums of times stay whole numbers."""


@dataclass(frozen=True, slots=True)
class Throttle:
    """Let a tenant's host sleep for ``pause_us`` before it begins its next job, and before each one after that.

    It sleeps once there is a job that it could begin: a training loop, whose next iteration waits already, sleeps
    after each iteration. Kernels that are in flight, and the job in service, go on. A sleep that has begun is not made
    shorter or longer. Chen, Subramaniyan and Wang (GPUColo, ICDCS 2024, section on the inner controller) throttle
    training so.

    Legal: ``view.tenants.throttlable`` is 1: not throttled at this instant already. The pause is finite, 0 to
    :data:`MOST_PAUSE_US`, and another than the present one.

    Cost: no time of the GPU's host but that of the decision. The tenant's next job begins ``throttle_us`` of the
    scenario later (2 ms).
    """

    NAME: ClassVar = "throttle"
    VERB: ClassVar = "throttle a tenant"

    tenant: int
    """Row of ``view.tenants``."""
    pause_us: float
    """Of its host, before each job; 0: none."""


@dataclass(frozen=True, slots=True)
class SetBudget:
    """Give a CPU core that shares the GPU's memory another budget of cache misses a period.

    The budget counts from the core's own next tick on, and binds while the bandwidth lock of a tenant counts, whose
    host holds it and runs. A process that has spent it is throttled until the next tick; hosts never are. Ali and Yun
    (BWLOCK++, ECRTS 2018).

    Legal: ``view.cores.settable`` is 1: not set at this instant already. The budget is whole, 1 to
    :data:`~gpusched_env.workload.cores.spec.MOST_EVENTS` (which no core reaches), and is not what the core has.

    Cost: no time of the GPU's host but that of the decision.
    """

    NAME: ClassVar = "budget"
    VERB: ClassVar = "set the budget of a core"

    core: int
    """Row of ``view.cores``."""
    events: int = MOST_EVENTS
    """Misses of the last-level cache in a period."""
    always: bool = False
    """Whether it binds also while no lock counts."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until the next event, or until ``until_us`` (simulated time) at the latest.

    Legal: always, with a time that is not before now.

    Cost: nothing, but time: at least one picosecond.
    """

    NAME: ClassVar = "wait"
    VERB: ClassVar = "wait"

    until_us: float = math.inf
    """Simulated time, not before now."""


Command = Launch | Preempt | SetPartition | Reject | Synchronise | Reshape | Throttle | SetBudget | Wait

COMMANDS: Final[tuple[type[Command], ...]] = (
    Launch,
    Preempt,
    SetPartition,
    Reject,
    Synchronise,
    Reshape,
    Throttle,
    SetBudget,
    Wait,
)
"""By code: that of the timeline, and of compiled code. ``Wait`` is last and in no timeline."""
CODES: Final[dict[type[Command], int]] = {command: code for code, command in enumerate(COMMANDS)}
LAUNCH: Final = CODES[Launch]
PREEMPT: Final = CODES[Preempt]
SET_PARTITION: Final = CODES[SetPartition]
REJECT: Final = CODES[Reject]
SYNCHRONISE: Final = CODES[Synchronise]
RESHAPE: Final = CODES[Reshape]
THROTTLE: Final = CODES[Throttle]
SET_BUDGET: Final = CODES[SetBudget]
WAITING: Final = CODES[Wait]
NOTHING: Final = -1

WAIT = Wait()

STREAM_S_OWN: Final = 1
"""``Numbers.choice`` of a launch at the priority of its stream (stream priorities are 0 and below)."""


def numbers_of(command: Command) -> Numbers:
    """A command in numbers."""
    match command:
        # First what is given most often.
        case Wait(until_us):
            return Numbers(WAITING, until_us=until_us)
        case Launch(launch, priority, partition, stream):
            choice = STREAM_S_OWN if priority is None else priority
            return Numbers(LAUNCH, launch, choice, -1 if stream is None else stream, *_sms(partition))
        case Preempt(launch, mode, partition):
            return Numbers(PREEMPT, launch, MODES.index(mode), -1, *_sms(partition))
        case SetPartition(tenant, partition):
            return Numbers(SET_PARTITION, tenant, 0, -1, *_sms(partition))
        case Reject(tenant, job):
            return Numbers(REJECT, tenant, job)
        case Synchronise(consumer, policy, order, wait_kernel):
            choice = 2 * POLICIES.index(policy.kind) + policy.reorder
            return Numbers(SYNCHRONISE, consumer, choice, ORDERS.index(order), _size(policy), int(wait_kernel))
        case Reshape(launch, form):
            return Numbers(RESHAPE, launch, form)
        case Throttle(tenant, pause_us):
            return Numbers(THROTTLE, tenant, to_ps(pause_us))
        case SetBudget(core, events, always):
            return Numbers(SET_BUDGET, core, events, first=int(always))


def command_of(numbers: Numbers) -> Command:
    """The command that numbers stand for: the inverse of :func:`numbers_of`."""
    if numbers.code == SYNCHRONISE:
        kind: Any = POLICIES[numbers.choice // 2]
        size = {"strided": {"stride": numbers.first}, "tile": {"steps": numbers.first}}.get(kind, {})
        policy = TilePolicy(kind, **size, reorder=numbers.choice % 2 == 1)
        return Synchronise(numbers.target, policy, ORDERS[numbers.stream], numbers.sms == 1)
    partition = Partition(numbers.first, numbers.sms) if numbers.sms > 0 else None
    if numbers.code == LAUNCH:
        priority = None if numbers.choice == STREAM_S_OWN else numbers.choice
        return Launch(numbers.target, priority, partition, None if numbers.stream < 0 else numbers.stream)
    if numbers.code == PREEMPT:
        return Preempt(numbers.target, MODES[numbers.choice], partition)
    if numbers.code == SET_PARTITION:
        return SetPartition(numbers.target, partition)
    if numbers.code == REJECT:
        return Reject(numbers.target, numbers.choice)
    if numbers.code == RESHAPE:
        return Reshape(numbers.target, numbers.choice)
    if numbers.code == THROTTLE:
        return Throttle(numbers.target, to_us(numbers.choice))
    if numbers.code == SET_BUDGET:
        return SetBudget(numbers.target, numbers.choice, numbers.first == 1)
    return Wait(numbers.until_us)


def _size(policy: TilePolicy) -> int:
    """The number that a policy has besides its kind."""
    return policy.steps if policy.kind == "tile" else policy.stride


def _sms(partition: Partition | None) -> tuple[int, int]:
    return (0, 0) if partition is None else (partition.first, partition.sms)
