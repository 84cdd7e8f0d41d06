"""LithOS: tenants own SMs, lend those that they do not need, and get them back when an atom of a kernel ends.

P. H. Coppock, B. Zhang, E. H. Solomon, V. Kypriotis, L. Yang, B. Sharma, D. Schatzberg, T. C. Mowry, D. Skarlatos,
*LithOS: An Operating System for Efficient Machine Learning on GPUs* (SOSP 2025). Its code is not public; where the
paper leaves open what a scheduler has to decide, the reproduction AureliusJustin/lithos-reproduction was looked at
(``tpc_alloc.c``, ``docs/FIDELITY.md``).

==================================================== ============= ====================================================
rule as published                                    section       here
==================================================== ============= ====================================================
A client has a quota of TPCs (two SMs each) that is  5.3           ``quota``: equal shares of the ``urgent`` tenants,
guaranteed to it; best-effort ones have none                       or of ``all``. The paper's are set by an operator
TPC stealing: TPCs whose owner has no ready work     5.3           the same. A TPC that a launched kernel has got is
are lent, by predicted completions of what each has                busy until that ends; of a kernel of few blocks these
been given                                                         are the first of its range. Tenants get ranges of
                                                                   neighbouring TPCs only, best-effort ones the longest
Stolen work has a lower stream priority              5.3           the same
Work in flight of a queue is limited to 100 us       5.3           ``outstanding_us``: the predicted time left of a
                                                                   tenant's launched kernels
Kernel atomizer: a kernel runs as atoms of blocks    5.4           ``atom_us``, 500: the kernel is drained that long
that take 250 to 500 us, each on TPCs of its own                   after its start, less a round of its blocks, and
                                                                   launched again on the TPCs that are free then
Right-sizing: a kernel gets the fewest TPCs with     5.5           ``slip``, off unless it is given: by rounds of
which it is hardly slower                                          blocks (:mod:`.right_sizing`), of its tenant's TPCs
                                                                   the first ones. Graphs are left as they are
==================================================== ============= ====================================================

Left out: frequency scaling (5.6), which saves power at a loss of speed; a kernel never gets more SMs than its blocks
can use.

What is free: the mask of TPCs, which is a field of the launch that the driver does not document (other schedulers pay
the device's ``partition_change_us``); and the blocks outside an atom, which the atomizer starts and ends at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.evict import SETTLED_US, least_urgent
from gpusched_env.baselines.pending import ID, LAUNCHABLE, TENANT, launchable_kernels
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import KernelKnowledge, Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command, Launch, Partition, Preempt, SetPartition, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.room import UNBOUNDED, Room
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

_EXACT = 1e-9
"""How much a product of a slip and rounds may be short of a whole number."""


def fewest_sms(blocks: float, blocks_per_sm: float, sms: int, slip: float) -> int:
    """The fewest SMs on which so many blocks take at most ``slip`` times as many rounds as on all.

    Args:
        blocks: to run, at least 1.
        blocks_per_sm: that an SM holds, at least 1.
        sms: of the GPU.
        slip: at least 1.

    Returns:
        1 to ``sms``.
    """
    rounds = math.ceil(blocks / (sms * blocks_per_sm))
    allowed = math.floor(slip * rounds + _EXACT)
    return math.ceil(blocks / (allowed * blocks_per_sm))


Row = list[float]
IDENTITY, PREEMPTED = int(PendingColumn.IDENTITY), int(PendingColumn.PREEMPTED)
SMS, BLOCKS, BLOCKS_PER_SM = int(PendingColumn.SMS), int(PendingColumn.BLOCKS), int(PendingColumn.BLOCKS_PER_SM)
RUNNING_ID, RUNNING_TENANT = int(RunningColumn.ID), int(RunningColumn.TENANT)
RUNNING_IDENTITY = int(RunningColumn.IDENTITY)
STARTED, STARTED_US = int(RunningColumn.STARTED), int(RunningColumn.STARTED_US)
BLOCKS_WAITING = int(RunningColumn.BLOCKS_WAITING)
PREEMPTING, PREEMPTIBLE = int(RunningColumn.PREEMPTING), int(RunningColumn.PREEMPTIBLE)
LEFT_US, KERNELS_PENDING = int(TenantColumn.LAUNCHED_LEFT_US), int(TenantColumn.KERNELS_PENDING)
Quota = Literal["urgent", "all"]
SMS_PER_TPC = 2


class LithOS:
    """TPC stealing: tenants own SMs, best-effort kernels run in atoms on those that are idle."""

    set_up = SetUp(commands=("preempt", "partition"), masks=True)
    reads: Reads = ("priorities", "profiles", "shapes", "completions", "progress")
    waits_for: Room | None = None
    ranges: ClassVar[Ranges] = {
        "quota": Choice(get_args(Quota)),
        "atom_us": Range(50.0, 2000.0, log=True),
        "outstanding_us": Range(10.0, 1000.0, log=True),
        "classes": Range(1, 4),
        "slip": Range(1.0, 2.0),
    }

    def __init__(
        self,
        quota: Quota = "urgent",
        atom_us: float = 500.0,
        outstanding_us: float = 100.0,
        classes: int = 1,
        slip: float | None = None,
    ) -> None:
        """``quota``: whose all TPCs are, in equal shares: those of the urgent tenants, or of all.

        Args:
            quota: see above.
            atom_us: how long an atom lasts at most, as far as a block does not take longer (above 0).
            outstanding_us: a tenant's next kernel is launched once those in flight have so long to go (at least 0).
            classes: priorities, from the highest on, whose tenants are urgent (at least 1).
            slip: a kernel gets the fewest TPCs on which it takes at most so many times its time on all (at least 1);
                ``None``: all that its blocks can use.

        Raises:
            InputError: a value is out of range.
        """
        if quota not in get_args(Quota):
            raise InputError(f"lithos: quota is {quota!r}, must be urgent or all")
        if not (atom_us > 0.0 and outstanding_us >= 0.0):
            given = f"atom_us {atom_us}, outstanding_us {outstanding_us}"
            raise InputError(f"lithos: {given}; must be above 0, and not negative")
        if classes < 1:
            raise InputError(f"lithos: classes is {classes}, must be at least 1")
        if slip is not None and not slip >= 1.0:
            raise InputError(f"lithos: slip is {slip}, must be at least 1, or none")
        self._quota, self._atom_us, self._outstanding_us, self._count = quota, atom_us, outstanding_us, classes
        self._slip = slip

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Share out the TPCs; all are idle."""
        self._sms = sms = knowledge.gpu.sms
        self._unit = SMS_PER_TPC if sms % SMS_PER_TPC == 0 else 1
        self._tpcs = sms // self._unit
        last = least_urgent([tenant.priority for tenant in knowledge.tenants], self._count)
        owners = [i for i, t in enumerate(knowledge.tenants) if self._quota == "all" or t.priority <= last]
        ends = [(i + 1) * self._tpcs // len(owners) for i in range(len(owners))]
        firsts = [0, *ends[:-1]]
        self._own = {owner: range(first, end) for owner, first, end in zip(owners, firsts, ends, strict=True)}
        """TPCs of each tenant with a quota. Of more tenants than TPCs the last ones have some, the others none."""
        self._urgent_level = max(-1, 1 - knowledge.gpu.priorities)
        self._set_up = [
            SetPartition(i, self._partition(own)) for i, own in self._own.items() if 0 < len(own) < self._tpcs
        ]
        self._last_us = [self._last_us_of(kernel) for kernel in knowledge.kernels]
        """How long after its start a kernel is drained (us), by identity."""
        self._sized = [self._slip is not None and kernel.nodes == 1 for kernel in knowledge.kernels]
        """Whether a kernel is given no more TPCs than it needs, by identity."""
        self._all = self._set_of(range(self._tpcs))
        self._sets = {owner: self._set_of(own) for owner, own in self._own.items()}
        """Set of the TPCs of each tenant with a quota."""
        self._due_us = np.array(self._last_us)
        self._most_launched = np.full(len(knowledge.tenants), UNBOUNDED)
        self._most_left_us = np.full(len(knowledge.tenants), self._outstanding_us)
        self._held: dict[float, int] = {}
        """Set of the TPCs of each launch in flight."""
        self._launches = b""
        """Ids of the launches in flight when it last looked."""
        self._busy: dict[float, int] = {}
        """Set of the TPCs that launches hold, by tenant with launches in flight."""
        self._free_for: dict[tuple[int, tuple[int, ...]], bytes] = {}
        """What is free for a tenant while kernels of some owners wait, for the same launches in flight."""

    def decide(self, view: View) -> Command:
        """End atoms; then launch the first kernel for which there are TPCs."""
        self.waits_for = None
        if self._set_up:
            return self._set_up.pop()
        self._look(view)
        end = self._end_of_atom(view)
        if isinstance(end, Preempt):
            return end
        left_us = view.tenants.array[:, LEFT_US].tolist()
        least_early_us = math.inf
        held_back: set[int] = set()
        early: set[int] = set()
        for kernel in launchable_kernels(view):
            tenant = int(kernel[TENANT])
            early_us = left_us[tenant] - self._outstanding_us
            # What was launched behind an atom waits for the next one.
            if early_us > 0.0 and not kernel[PREEMPTED]:
                least_early_us = min(least_early_us, early_us)
                early.add(tenant)
                continue
            tpcs = self._tpcs_for(view, kernel)
            if not tpcs:
                held_back.add(tenant)
                continue
            self.waits_for = self._room(view, held_back, early, tenant)
            launch = int(kernel[ID])
            if tpcs == self._own.get(tenant):
                self._held[launch] = self._set_of(tpcs[: self._wanted(kernel)])
                return Launch(launch, self._urgent_level)
            self._held[launch] = self._set_of(tpcs)
            own = self._own.get(tenant, range(0))
            level = self._urgent_level if own[: len(tpcs)] == tpcs else 0
            return Launch(launch, level, self._partition(tpcs))
        self.waits_for = self._room(view, held_back, early)
        return Wait(min(end.until_us, view.time_us + max(least_early_us, SETTLED_US)))

    def _room(self, view: View, held_back: set[int], early: set[int], launching: int | None = None) -> Room | None:
        """What tenants need for a launch; ``None``: that is not all that matters.

        Args:
            view: the present.
            held_back: tenants with kernels that wait for TPCs, which are free when something has changed.
            early: tenants with kernels that wait for what is in flight.
            launching: the tenant whose kernel is launched now, if one is: those behind it have not been looked at.
        """
        pending, stops = view.pending.array, bool(view.running.array[:, PREEMPTING].any())
        preempted = pending[:, PREEMPTED] != 0.0
        if launching is None and not pending[preempted, LAUNCHABLE].all():
            return None
        if launching is not None:
            # Of an owner whose last kernel is launched TPCs are lent again.
            lends = view.tenants.array[launching, KERNELS_PENDING] <= 1.0
            if stops or preempted.any() or (held_back and lends):
                return None
        most_launched = self._most_launched.copy()
        most_launched[list(held_back - early)] = 0
        any_change = stops or bool(held_back)
        return Room(most_launched, self._most_left_us, self._due_us, SETTLED_US, any_change)

    def _end_of_atom(self, view: View) -> Preempt | Wait:
        """The drain that ends an atom now, or when to look again."""
        looks_us = math.inf
        running = view.running.array
        divisible = running[:, STARTED] * running[:, BLOCKS_WAITING]
        for row in divisible.nonzero()[0].tolist():
            kernel = running[row].tolist()
            if kernel[PREEMPTING]:
                continue
            ends_us = kernel[STARTED_US] + self._last_us[int(kernel[RUNNING_IDENTITY])] + SETTLED_US
            if ends_us <= view.time_us and kernel[PREEMPTIBLE]:
                return Preempt(int(kernel[RUNNING_ID]), "drain")
            looks_us = min(looks_us, max(ends_us, view.time_us + SETTLED_US))
        return Wait(looks_us)

    def _tpcs_for(self, view: View, kernel: Row) -> range:
        """TPCs for a pending kernel: its tenant's and idle neighbours as it needs them, or only idle ones, or none."""
        tenant, wanted = int(kernel[TENANT]), self._wanted(kernel)
        own = self._own.get(tenant, range(0))
        if wanted <= len(own):
            return own[:wanted] if self._sized[int(kernel[IDENTITY])] else own
        free = self._free(view, tenant)
        if not own:
            return remembered_run(free)[-wanted:]
        first, end = own.start, own.stop
        while end - first < wanted and free[end % self._tpcs]:
            end += 1
        while end - first < wanted and free[(first - 1) % self._tpcs]:
            first -= 1
        return own if end - first == len(own) else range(first, end)

    def _free(self, view: View, tenant: int) -> bytes:
        """Whether (1) no other tenant's kernel has a TPC, and its owner no kernel that waits for it; by TPC."""
        pending = view.tenants.array[:, KERNELS_PENDING].tolist()
        waiting = tuple(owner for owner in self._sets if owner != tenant and pending[owner] > 0)
        free = self._free_for.get((tenant, waiting))
        if free is None:
            taken = 0
            for holder, tpcs in self._busy.items():
                if holder != tenant:
                    taken |= tpcs
            for owner in waiting:
                taken |= self._sets[owner]
            free = self._free_for[tenant, waiting] = (self._all ^ taken).to_bytes(self._tpcs, "little")
        return free

    def _look(self, view: View) -> None:
        """Find out which TPCs each tenant's kernels in flight hold, unless the same ones are in flight as before."""
        ids = view.running.array[:, RUNNING_ID]
        # There may be hundreds, and most of the time a scheduler is asked the same ones: bytes are compared at once.
        launches = ids.tobytes()
        if launches == self._launches:
            return
        self._launches = launches
        self._held = {launch: self._held.get(launch, 0) for launch in ids.tolist()}
        self._busy, self._free_for = {}, {}
        for tpcs, tenant in zip(self._held.values(), view.running.array[:, RUNNING_TENANT].tolist(), strict=True):
            self._busy[tenant] = self._busy.get(tenant, 0) | tpcs

    def _set_of(self, tpcs: range) -> int:
        """A set of TPCs as a number, so that a union of sets is one operation: its byte of that place is 1 for each."""
        members = bytearray(self._tpcs)
        for tpc in tpcs:
            members[tpc % self._tpcs] = 1
        return int.from_bytes(members, "little")

    def _last_us_of(self, kernel: KernelKnowledge) -> float:
        """How long after its start a kernel is drained: an atom, less a round of its blocks; ``inf``: it never is."""
        if kernel.graph or math.isnan(kernel.duration_us):
            return math.inf
        rounds = math.ceil(kernel.blocks / (self._sms * kernel.blocks_per_sm))
        return max(0.0, self._atom_us - kernel.duration_us / rounds)

    def _wanted(self, kernel: Row) -> int:
        """TPCs that a pending kernel would use on an empty GPU, or that it needs."""
        sms = kernel[SMS]
        if self._slip is not None and self._sized[int(kernel[IDENTITY])]:
            sms = fewest_sms(kernel[BLOCKS], kernel[BLOCKS_PER_SM], self._sms, self._slip)
        return min(self._tpcs, math.ceil(sms / self._unit))

    def _partition(self, tpcs: range) -> Partition:
        return Partition(tpcs.start % self._tpcs * self._unit, len(tpcs) * self._unit)


def longest_run(free: Sequence[int]) -> range:
    """The longest run of free places (1) in a ring, the first one of equal length; it may go round the end."""
    ring = bytes(free) * 2
    # Of sequences of ones alone the longest is the greatest.
    run = max(ring.split(b"\0"))
    first = ring.index(run)
    return range(first, first + min(len(run), len(free)))


remembered_run = functools.lru_cache(maxsize=256)(longest_run)
""":func:`longest_run` of what seldom changes between two looks."""
