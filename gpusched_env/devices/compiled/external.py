"""A GPU outside of the simulation: what it reports of the launches that were sent to it.

Hosts, streams, windows and the scheduler's side are those of the simulated device, and their time is the GPU's. With
``w.external`` a launch goes to the outbox when it is handed to its stream (:func:`.issuing.send`): the GPU, not this
device, keeps it waiting for what is before it, and says when it has started and ended. A preemption goes there, too,
and takes effect when the GPU says that the kernel has left with blocks that it did not run.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import flight_of, launches, ops
from gpusched_env.devices.compiled.finishing import complete, ended, kernel_finished, kernel_preempted
from gpusched_env.devices.compiled.graphs import kernel_started
from gpusched_env.devices.compiled.issuing import is_graph, is_scheduled, post
from gpusched_env.devices.compiled.layout import READY
from gpusched_env.devices.compiled.lists import note_start
from gpusched_env.devices.rules.copies import direction
from gpusched_env.devices.rules.logs import log_copy


@inlined
def recall(w, slot):
    """A kernel is to hand out no further blocks."""
    post(w, -1 - slot)


@called
def left_reported(w, slot, blocks):
    """A kernel that was recalled has left the GPU, at the present time, with so many blocks that have not run."""
    flight_of(w, launches(w, slot)).blocks = blocks
    kernel_preempted(w, slot, True)


@called
def start_reported(w, slot):
    """A launch has started, at the present time."""
    launch = launches(w, slot)
    launch.state = READY
    if not is_scheduled(launch):
        flight_of(w, launch).started_ps = w.now_ps
    elif is_graph(w, launch):
        note_start(w, slot)
    else:
        kernel_started(w, slot)


@called
def end_reported(w, slot):
    """A launch has ended, at the present time; its start was reported before."""
    launch = launches(w, slot)
    if not is_scheduled(launch):
        log_copy(w, direction(ops(w, launch.op).kind), launch)
        ended(w, slot)
    elif is_graph(w, launch):
        complete(w, slot)
    else:
        kernel_finished(w, slot)
