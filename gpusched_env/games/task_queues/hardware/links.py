"""Laws of a link between GPUs that pass each other tasks, and the links of the Atos papers.

Two ways (Chen et al., *Scalable Irregular Parallelism with GPUs*, SC 2022, and its released program):

* **Push**, over NVLink. A worker lowers the depth in the owner's memory, an atomic operation whose answer it waits for,
  puts the vertex into a receive queue of the owner, and lets a fence and an atomic operation on the queue's end follow.
  What a ranking adds to a residual needs no answer and no put: the owner finds it.
* **Aggregation**, over InfiniBand. A worker puts task and value into a queue of its own GPU, one for each other GPU. A
  communication kernel looks at these queues: it sends whole batches as soon as there is one, and fewer tasks after some
  looks in a row that found no batch. The owner acts on a task when it has arrived.

Devices: :mod:`gpusched_env.games.task_queues.devices`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from gpusched_env.compiling import law
from gpusched_env.errors import InputError

MOST_SENT: Final = 131_072
"""Tasks of one transfer of the communication kernel."""
ANNOUNCED_TRIPS: Final = 5
"""Trips over the link after which a pushed task of a search can be read: to the owner's depth and back, the put and its
acknowledgement, which the fence waits for, and the queue's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLink:
    """What lies between any two GPUs; each direction of each pair has one of its own."""

    name: str
    latency_ps: int
    """Latency of a trip, from a worker of one GPU to the memory of another."""
    bytes_per_us: float
    """Bandwidth of a pair, in one direction."""
    operation_bytes: int
    """Bytes that an atomic operation, a put, or a task of a batch moves."""
    sort_ps: int
    """Time by which a round takes longer in a program for several GPUs: finds are sorted by their owners."""
    batch: int | None = None
    """Tasks that are sent at once; ``None``: each is pushed for itself."""
    wait: int = 1
    """Looks of the communication kernel after which fewer are sent."""
    look_ps: int = 1
    """Time between two looks of the communication kernel."""

    def __post_init__(self) -> None:
        for name, least in (("latency_ps", 0), ("operation_bytes", 1), ("sort_ps", 0), ("wait", 1), ("look_ps", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError(f"link {self.name}: {name} is {value!r}, must be a whole number of at least {least}")
        if self.batch is not None and (type(self.batch) is not int or not 1 <= self.batch <= MOST_SENT):
            raise InputError(f"link {self.name}: batch is {self.batch!r}, must be 1 to {MOST_SENT}, or none: a push")
        if not 0.0 < self.bytes_per_us < math.inf:
            raise InputError(f"link {self.name}: bytes_per_us is {self.bytes_per_us}, must be more than 0")

    def times(self, answered: bool) -> LinkTimes:
        """What a task costs on this link.

        Args:
            answered: whether a worker that pushes has to know if it improved something: in a search.
        """
        pushes = self.batch is None and answered
        bytes_moved = (2 if pushes else 1) * self.operation_bytes
        return LinkTimes(
            task_ps=bytes_moved / self.bytes_per_us * 1e6,
            lands_ps=self.latency_ps,
            announced_ps=(ANNOUNCED_TRIPS if pushes else 1) * self.latency_ps,
            answer_ps=2 * self.latency_ps if pushes else 0,
            fence_ps=2 * self.latency_ps if pushes else 0,
        )


class LinkTimes(NamedTuple):
    """Times of tasks that leave a GPU, ps."""

    task_ps: float
    """Time that the link is busy with one task."""
    lands_ps: int
    """Time from a task's departure until it changes what the owner knows."""
    announced_ps: int
    """Time from a task's departure until the owner's workers can read it."""
    answer_ps: int
    """Time that its worker waits before its other pushes."""
    fence_ps: int
    """Time that its worker waits after its other pushes."""


@law
def looked_at(look_ps: int, now_ps: int) -> int:
    """The communication kernel's first look at ``now_ps`` or later; it looks every ``look_ps``, from 0 on."""
    return (now_ps + look_ps - 1) // look_ps * look_ps


@law
def sent_at(look_ps: int, first_ps: int, now_ps: int, tasks: int, batch: int, wait: int) -> int:
    """When the communication kernel sends from a queue next, if nothing more comes.

    Args:
        look_ps: between its looks.
        first_ps: the first look at which less than a batch was there.
        now_ps: the present.
        tasks: that wait, at least one.
        batch: tasks that are sent at once.
        wait: the look at which fewer are.
    """
    last_ps = first_ps + (wait - 1) * look_ps
    return min(last_ps, looked_at(look_ps, now_ps)) if tasks >= batch else last_ps


@law
def sent_of(tasks: int, batch: int) -> int:
    """How many of the waiting ``tasks`` go: whole batches, or all if there is none."""
    whole = min(tasks, MOST_SENT) // batch * batch
    return whole if whole > 0 else tasks


NVLINK: Final = TaskLink(
    name="nvlink",
    latency_ps=700_000,
    bytes_per_us=25_000.0,
    operation_bytes=32,
    sort_ps=60_000,
)
"""The links between the V100s of a DGX Station, four that are all linked.

* Bandwidth: one NVLink 2.0 a pair, 25 GB/s in each direction (NVIDIA V100 data sheet: six of them; two pairs have a
  second one). An operation is a header and a payload of 16 bytes each, the smallest packet.
* Latency: an estimate, nothing is published for single operations. The own L2 answers after 126 ns; here the answer
  of another GPU takes 1.4 us.
* ``sort``: three more barriers of a block, 30 cycles each at 1,530 MHz, an estimate.
"""
INFINIBAND: Final = TaskLink(
    name="infiniband",
    latency_ps=3_000_000,
    bytes_per_us=12_500.0,
    operation_bytes=8,
    sort_ps=60_000,
    batch=16,
    wait=4,
    look_ps=504_000,
)
"""The links between nodes with one V100 each.

* EDR InfiniBand, 100 Gbit/s. A task is a vertex and a value of 4 bytes each, as in the released program.
* Latency: two trips over PCIe of 1 us each (``v100-sxm.yaml``), and 1 us of InfiniBand, an estimate.
* ``batch``, ``wait``: how the released program is built (INTERBATCHSIZE 16, WAITTIMES 4). ``look``: four trips to L2 of
  126 ns, which its loop reads one after another.
"""
