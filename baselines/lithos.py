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
==================================================== ============= ====================================================

Left out: right-sizing (5.5) and frequency scaling (5.6), which save TPCs and power at a loss of speed; a kernel never
gets more SMs than its blocks can use.

What is free: the mask of TPCs, which is a field of the launch that the driver does not document (other schedulers pay
the device's ``partition_change_us``); and the blocks outside an atom, which the atomizer starts and ends at once.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.evict import SETTLED_US
from gpusched_env.baselines.pending import launchable_rows
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command, Launch, Partition, Preempt, SetPartition, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn
Row = NDArray[np.float64]
Quota = Literal["urgent", "all"]
SMS_PER_TPC = 2


class LithOS:
    """TPC stealing: tenants own SMs, best-effort kernels run in atoms on those that are idle."""

    commands = ("preempt", "partition")
    masks = True
    reads: Reads = ("priorities", "profiles", "shapes", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        "quota": Choice(get_args(Quota)),
        "atom_us": Range(50.0, 2000.0, log=True),
        "outstanding_us": Range(10.0, 1000.0, log=True),
    }

    def __init__(self, quota: Quota = "urgent", atom_us: float = 500.0, outstanding_us: float = 100.0) -> None:
        """``quota``: whose all TPCs are, in equal shares: those of the tenants of the highest priority, or of all.

        Args:
            quota: see above.
            atom_us: how long an atom lasts at most, as far as a block does not take longer (above 0).
            outstanding_us: a tenant's next kernel is launched once those in flight have so long to go (at least 0).

        Raises:
            InputError: a value is out of range.
        """
        if quota not in get_args(Quota):
            raise InputError(f"lithos: quota is {quota!r}, must be urgent or all")
        if not (atom_us > 0.0 and outstanding_us >= 0.0):
            given = f"atom_us {atom_us}, outstanding_us {outstanding_us}"
            raise InputError(f"lithos: {given}; must be above 0, and not negative")
        self._quota, self._atom_us, self._outstanding_us = quota, atom_us, outstanding_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Share out the TPCs; all are idle."""
        self._knowledge = knowledge
        sms = knowledge.gpu.sms
        self._unit = SMS_PER_TPC if sms % SMS_PER_TPC == 0 else 1
        self._tpcs = sms // self._unit
        highest = min(tenant.priority for tenant in knowledge.tenants)
        owners = [i for i, t in enumerate(knowledge.tenants) if self._quota == "all" or t.priority == highest]
        ends = [(i + 1) * self._tpcs // len(owners) for i in range(len(owners))]
        firsts = [0, *ends[:-1]]
        self._own = {owner: range(first, end) for owner, first, end in zip(owners, firsts, ends, strict=True)}
        """By tenant with a quota: its TPCs. The last of more tenants than TPCs have some, the others none."""
        self._urgent_level = max(-1, 1 - knowledge.gpu.priorities)
        self._set_up = [
            SetPartition(i, self._partition(own)) for i, own in self._own.items() if 0 < len(own) < self._tpcs
        ]
        self._held: dict[int, range] = {}
        """By launch in flight: its TPCs, from the first one on, round the end."""

    def decide(self, view: View) -> Command:
        """End atoms; then launch the first kernel for which there are TPCs."""
        if self._set_up:
            return self._set_up.pop()
        running = set(view.running.array[:, R.ID].astype(int).tolist())
        self._held = {launch: tpcs for launch, tpcs in self._held.items() if launch in running}
        end = self._end_of_atom(view)
        if isinstance(end, Preempt):
            return end
        looks_us = end.until_us
        table = view.pending.array
        for row in sorted(launchable_rows(view), key=lambda row: (table[row, P.PRIORITY], table[row, P.ID])):
            kernel = table[row]
            launch, tenant = int(kernel[P.ID]), int(kernel[P.TENANT])
            early_us = float(view.tenants.array[tenant, T.LAUNCHED_LEFT_US]) - self._outstanding_us
            # What was launched behind an atom waits for the next one.
            if early_us > 0.0 and not kernel[P.PREEMPTED]:
                looks_us = min(looks_us, view.time_us + max(early_us, SETTLED_US))
                continue
            tpcs = self._tpcs_for(view, kernel)
            if not tpcs:
                continue
            own = self._own.get(tenant, range(0))
            if tpcs == own:
                self._held[launch] = tpcs[: self._wanted(kernel)]
                return Launch(launch, self._urgent_level)
            self._held[launch] = tpcs
            return Launch(launch, 0, self._partition(tpcs))
        return Wait(looks_us)

    def _end_of_atom(self, view: View) -> Preempt | Wait:
        """The drain that ends an atom now, or when to look again."""
        looks_us = math.inf
        for kernel in view.running.array:
            running = kernel[R.STARTED] and not kernel[R.PREEMPTING]
            if not running or kernel[R.NODES] > 1 or not kernel[R.BLOCKS_WAITING] or math.isnan(kernel[R.PROFILED_US]):
                continue
            profile = self._knowledge.kernels[int(kernel[R.IDENTITY])]
            rounds = math.ceil(profile.blocks / (self._knowledge.gpu.sms * profile.blocks_per_sm))
            last_us = max(0.0, self._atom_us - profile.duration_us / rounds)
            ends_us = float(kernel[R.STARTED_US]) + last_us + SETTLED_US
            if ends_us <= view.time_us and kernel[R.PREEMPTIBLE]:
                return Preempt(int(kernel[R.ID]), "drain")
            looks_us = min(looks_us, max(ends_us, view.time_us + SETTLED_US))
        return Wait(looks_us)

    def _tpcs_for(self, view: View, kernel: Row) -> range:
        """TPCs for a pending kernel: its tenant's and idle neighbours as it needs them, or only idle ones, or none."""
        tenant, wanted = int(kernel[P.TENANT]), self._wanted(kernel)
        own = self._own.get(tenant, range(0))
        if wanted <= len(own):
            return own
        free = self._free(view, tenant)
        if not own:
            run = longest_run(free)
            return run[-wanted:]
        first, end = own.start, own.stop
        while end - first < wanted and free[end % self._tpcs]:
            end += 1
        while end - first < wanted and free[(first - 1) % self._tpcs]:
            first -= 1
        return own if end - first == len(own) else range(first, end)

    def _free(self, view: View, tenant: int) -> list[bool]:
        """By TPC: whether no other tenant's kernel has it, and its owner no kernel that waits for it."""
        free = [True] * self._tpcs
        for kernel in view.running.array:
            if kernel[R.TENANT] != tenant:
                for tpc in self._held.get(int(kernel[R.ID]), range(0)):
                    free[tpc % self._tpcs] = False
        for owner, own in self._own.items():
            if owner != tenant and view.tenants.array[owner, T.KERNELS_PENDING] > 0:
                free[own.start : own.stop] = [False] * len(own)
        return free

    def _wanted(self, kernel: Row) -> int:
        """TPCs that a pending kernel would use on an empty GPU."""
        return min(self._tpcs, math.ceil(float(kernel[P.SMS]) / self._unit))

    def _partition(self, tpcs: range) -> Partition:
        return Partition(tpcs.start % self._tpcs * self._unit, len(tpcs) * self._unit)


def longest_run(free: list[bool]) -> range:
    """The longest run of free places in a ring, the first one of equal length; it may go round the end."""
    best = range(0)
    first: int | None = None
    for place in range(2 * len(free) + 1):
        if place < 2 * len(free) and free[place % len(free)]:
            first = place if first is None else first
        elif first is not None:
            run = range(first, min(place, first + len(free)))
            best = run if len(run) > len(best) else best
            first = None
    return best
