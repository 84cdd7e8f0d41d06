"""The world that :mod:`gpusched_env.workload.cores` runs on in compiled code: its access functions on records.

Importing this module lets Numba compile the interpreter of cores for an ``ENV`` record.
"""

from __future__ import annotations

from gpusched_env.devices.compiled import timing
from gpusched_env.devices.compiled.access import contexts, cores, problem, processes
from gpusched_env.devices.compiled.overloading import on_records
from gpusched_env.hardware.shared_memory import left_for_gpu
from gpusched_env.workload.cores import world
from gpusched_env.workload.cores.ticking import place_host
from gpusched_env.workload.host.world import host_changed


@on_records(world.core_rules)
def _core_rules(w):
    return problem(w)


@on_records(world.core)
def _core(w, c):
    return cores(w, c)


@on_records(world.process)
def _process(w, p):
    return processes(w, p)


@on_records(world.set_core_timer)
def _set_core_timer(w, c, at_ps):
    timing.arm_core(w, c, at_ps)


@on_records(world.traffic_changed)
def _traffic_changed(w):
    gpu = problem(w)
    w.dram_left = left_for_gpu(gpu.dram_bytes_per_us, w.cpu_traffic, gpu.kappa, gpu.saturation)
    x = contexts(w, w.slicer_context)
    if x.active == 1:
        # The event loop settles it before anything else happens; where it is being settled its rates come last.
        x.next_ps = w.now_ps


@on_records(host_changed)
def _host_changed(w, tenant):
    place_host(w, tenant)
