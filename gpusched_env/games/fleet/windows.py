"""What a fleet does between two reports, and packing rules: one text, compiled and as plain Python."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.co_location import NOW, OUTER_ERROR, all_activity, settle_controller
from gpusched_env.games.fleet.problem import CLIENTS, FINISHED, NEXT, TOP, WAITS

TOLERANCE: Final = 1.0 + OUTER_ERROR
"""A mean latency is later than its SLO above this much of it: the error that GPUColo's outer tier leaves alone."""


class PackingRule(NamedTuple):
    """A rule that puts a job on a GPU in use where its utilisation and memory have room, else on an empty one."""

    most_jobs: int = CLIENTS
    """Jobs on a GPU, at most."""
    best: bool = False
    """Whether it goes where the least utilisation is left (best fit); else to the first such GPU (first fit)."""
    unit: int = 0
    """GPUs come in units of so many, the last of which is for training and the others are not; 0: they do not."""
    inference: float = 1.0
    """Largest sum of utilisations of the inference on a GPU that has several jobs."""


@procedure
def has_room(fleet: Any, job: int, gpu: int, rule: Any) -> bool:
    """Whether utilisation, memory and the clients of a GPU have room for a job."""
    if fleet.training[job] == 0 and rule.inference < 1.0:
        asked = fleet.utilisation[job]
        for slot in range(fleet.count[gpu]):
            if fleet.training[fleet.slots[gpu, slot]] == 0:
                asked += fleet.utilisation[fleet.slots[gpu, slot]]
        if asked > rule.inference * fleet.speed[gpu] + 1e-9:
            return False
    room = fleet.load[gpu] + fleet.utilisation[job] / fleet.speed[gpu] <= 1.0 + 1e-9 or fleet.count[gpu] == 0
    return bool(
        room and fleet.claimed_gb[gpu] + fleet.memory_gb[job] <= fleet.size_gb[gpu] and fleet.count[gpu] < CLIENTS
    )


@procedure
def choose_gpu(fleet: Any, job: int, rule: Any) -> int:
    """The GPU of a job, or :data:`~gpusched_env.games.fleet.problem.WAITS`: there is none."""
    found, empty, fullest = WAITS, WAITS, -1.0
    for gpu in range(len(fleet.count)):
        if gpu >= fleet.clock[TOP] and (found != WAITS or empty != WAITS):
            break
        if rule.unit > 0 and (gpu % rule.unit == rule.unit - 1) != (fleet.training[job] == 1):
            continue
        if fleet.count[gpu] == 0:
            if empty == WAITS and fleet.memory_gb[job] <= fleet.size_gb[gpu]:
                empty = gpu
        elif fleet.count[gpu] < rule.most_jobs and fleet.load[gpu] > fullest and has_room(fleet, job, gpu, rule):
            found = gpu
            if not rule.best:
                return found
            fullest = fleet.load[gpu]
    return empty if found == WAITS else found


@procedure
def place_job(fleet: Any, job: int, gpu: int) -> None:
    """Put a job on a GPU."""
    fleet.slots[gpu, fleet.count[gpu]] = job
    fleet.count[gpu] += 1
    fleet.load[gpu] += fleet.utilisation[job] / fleet.speed[gpu]
    fleet.claimed_gb[gpu] += fleet.memory_gb[job]
    fleet.gpu_of[job] = gpu
    fleet.clock[TOP] = max(fleet.clock[TOP], gpu + 1)


@procedure
def remove_job(fleet: Any, gpu: int, slot: int) -> None:
    """Take a job off its GPU; others keep their order. What is claimed is added up anew, without rounding errors."""
    fleet.gpu_of[fleet.slots[gpu, slot]] = WAITS
    fleet.count[gpu] -= 1
    for later in range(slot, fleet.count[gpu]):
        fleet.slots[gpu, later] = fleet.slots[gpu, later + 1]
    load = memory_gb = 0.0
    for left in range(fleet.count[gpu]):
        load += fleet.utilisation[fleet.slots[gpu, left]] / fleet.speed[gpu]
        memory_gb += fleet.memory_gb[fleet.slots[gpu, left]]
    fleet.load[gpu] = load
    fleet.claimed_gb[gpu] = memory_gb


@procedure
def advance_job(fleet: Any, job: int, end_us: int) -> None:
    """What a job does until ``end_us``."""
    now_us = fleet.clock[NOW]
    waited_us = min(max(0, fleet.ready_us[job] - now_us), end_us - now_us)
    if fleet.training[job]:
        pace = fleet.pace[job] * (1.0 - fleet.lost[job])
        done = pace * (end_us - now_us - waited_us)
        if done >= fleet.left_us[job]:
            fleet.ended_us[job] = now_us + waited_us + int(fleet.left_us[job] / pace)
        fleet.left_us[job] = max(0.0, fleet.left_us[job] - done)
        return
    stays_us = min(fleet.left_us[job], float(end_us - now_us))
    served_us = max(0.0, stays_us - waited_us) * (1.0 - fleet.lost[job])
    fleet.served_us[job] += served_us
    fleet.ratio_us[job] += served_us * fleet.pace[job]
    fleet.late_us[job] += stays_us if fleet.pace[job] > TOLERANCE else stays_us - served_us
    fleet.left_us[job] -= stays_us
    if fleet.left_us[job] <= 0.0:
        fleet.ended_us[job] = now_us + int(stays_us)


@procedure
def advance(fleet: Any, control: int, rates: Any, report_us: int, restart_us: int) -> None:
    """Advance to the next report; jobs that have ended are gone there."""
    end_us = fleet.clock[NOW] + report_us
    for gpu in range(fleet.clock[TOP]):
        fleet.ratio[gpu] = 0.0
        if fleet.count[gpu] == 0:
            continue
        settle_controller(fleet, gpu, control, rates, restart_us, end_us)
        fleet.used_us[gpu] += report_us
        fleet.busy_us[gpu] += report_us * all_activity(fleet, gpu, end_us)
        for slot in range(fleet.count[gpu] - 1, -1, -1):
            job = fleet.slots[gpu, slot]
            if not fleet.training[job]:
                fleet.ratio[gpu] = max(fleet.ratio[gpu], fleet.pace[job])
            advance_job(fleet, job, end_us)
            if fleet.ended_us[job] >= 0:
                remove_job(fleet, gpu, slot)
                fleet.gpu_of[job] = FINISHED
    fleet.clock[NOW] = end_us


@procedure
def in_use(fleet: Any, unit: int) -> int:
    """GPUs that have jobs; of units, all GPUs of those where one has."""
    size, used, last = max(1, unit), 0, -1
    for gpu in range(fleet.clock[TOP]):
        if fleet.count[gpu] > 0 and gpu // size != last:
            last = gpu // size
            used += size
    return used


@procedure
def place_arrived(fleet: Any, rule: Any) -> None:
    """Place the jobs that have arrived, in their order, until one has no room."""
    while fleet.clock[NEXT] < len(fleet.training) and fleet.arrival_us[fleet.clock[NEXT]] <= fleet.clock[NOW]:
        gpu = choose_gpu(fleet, fleet.clock[NEXT], rule)
        if gpu == WAITS:
            return
        place_job(fleet, fleet.clock[NEXT], gpu)
        fleet.clock[NEXT] += 1


@procedure
def run_windows(fleet: Any, rule: Any, control: int, rates: Any, report_us: int, restart_us: int, counts: Any) -> None:
    """Pack and advance for all reports; ``counts`` gets of each the GPUs in use, jobs on them, jobs waiting."""
    arrived = 0
    for report in range(counts.shape[1]):
        place_arrived(fleet, rule)
        counts[0, report] = in_use(fleet, rule.unit)
        for gpu in range(fleet.clock[TOP]):
            counts[1, report] += fleet.count[gpu]
        while arrived < len(fleet.training) and fleet.arrival_us[arrived] <= fleet.clock[NOW]:
            arrived += 1
        counts[2, report] = arrived - fleet.clock[NEXT]
        advance(fleet, control, rates, report_us, restart_us)
