"""Programs of ACS's classes under its schedulers, and what is known of them."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

import msgspec

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import tenant
from gpusched_env.experiments.papers.acs.batches import TIMES, in_batches
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.carry_over import with_scaled_durations
from gpusched_env.workload.memory import graph_figures, with_own_storage
from gpusched_env.workload.workload import Workload

GPU = "rtx-3070"
HOST_US = 2.5
HOSTS_US = (0.0, 1.0, 2.5, 5.0)
SIMULATOR_GAP_US, STREAM_GAP_US = 4.4, 1.0
LENGTHS = (1.0, 2.0, 3.0, 4.0, 8.0)
"""Durations of kernels over the recorded ones: the paper's are longer, nobody says by how much."""
RL, DYNAMIC, STATIC = "deep RL", "dynamic networks", "static networks"
PROGRAMS = {
    RL: ("bodies6_step_b32768", "bodies9_step_b32768", "bodies11_step_b32768", "bodies20_step_b32768"),
    DYNAMIC: (
        "dynamic_routing_input0_b4", "dynamic_routing_input1_b4", "dynamic_routing_input2_b4", "condconv_b0_infer_b1",
        "instanas_infer_b1",
    ),
    STATIC: ("nasnetalarge_infer_b1", "amoebanet_infer_b1", "randwire_infer_b1"),
    "deep RL, few chains": (
        "bodies6_step_b2048", "bodies9_step_b2048", "bodies11_step_b2048", "bodies20_step_b2048", "physics_step_b4096",
    ),
    "other networks": ("mobilenetv3_infer_b1", "resnet50_infer_b1", "bert_infer_b1_s128", "lstm_infer_b16_t50"),
}  # fmt: skip
"""Recorded programs by the paper's classes; the last two have no counterpart there."""
SERIAL, GRAPH, BEFORE, SW, SLOW_SW, HW, ORACLE, QUEUED, PERSISTENT = (
    "serial", "CUDA graph", "CUDA graph made before", "ACS-SW", "ACS-SW, 10 us", "ACS-HW", "critical path, 5 us",
    "queued, 5 us", "persistent threads",
)  # fmt: skip
SYNC = {SW: "launch_us=2,sync_us=3", SLOW_SW: "launch_us=4,sync_us=6"}
"""Launch and synchronisation of a kernel: 5 to 20 us in all where the paper profiled them."""
SIZES = (8, 16, 32, 64)
SCHEDULERS = {
    SERIAL: "serial",
    GRAPH: "cuda-graph",
    BEFORE: "cuda-graph(per_input=false)",
    **{f"{SW}, {size}": f"acs-sw(size={size},{SYNC[SW]})" for size in SIZES},
    SLOW_SW: f"acs-sw(size=32,{SYNC[SLOW_SW]})",
    **{f"{HW}, {size}": f"acs-hw(size={size})" for size in SIZES},
    ORACLE: f"critical-path({SYNC[SW]})",
    QUEUED: f"earliest-start(depth=8,{SYNC[SW]})",
    PERSISTENT: "persistent-threads",
}
AGAIN, OWN = "used again", "of its own"
"""Memory of results: as PyTorch's allocator hands it out, or renamed."""
BY_MEMORY = (SERIAL, GRAPH, BEFORE, f"{SW}, 32", f"{HW}, 16", f"{HW}, 32", PERSISTENT)
"""Schedulers that are also run with memory of its own for each result."""
BY_LENGTH = (SERIAL, GRAPH, BEFORE, f"{SW}, 32", f"{HW}, 32", PERSISTENT)
"""Schedulers that are also run with longer kernels."""
BY_BATCH = (SERIAL, f"{SW}, 32", f"{HW}, 32")
"""Schedulers that networks are also run under in other batches."""


@dataclass(frozen=True, slots=True)
class AcsOutcome:
    """What one run comes to."""

    time_us: float
    """The time from the start of the program to its end."""
    occupancy: float
    """Warps of resident blocks over the GPU's, mean over the time: of each kernel as many as fit, while it ran.
    Kernels side by side count each as if alone, at most the whole GPU."""


@dataclass(frozen=True, slots=True)
class AcsRun:
    """A program under a scheduler."""

    program: str
    scheduler: str
    """The scheduler's name, one of :data:`SCHEDULERS`."""
    gap_us: float
    """The gap between two kernels of a stream."""
    host_us: float = HOST_US
    """The time from one launch of the application to the next."""
    length: float = 1.0
    """The length of kernels, one of :data:`LENGTHS`."""
    memory: str = AGAIN
    times: int = 1
    """The batch over the recorded one."""

    @classmethod
    def as_full(cls, program: str, scheduler: str, gap_us: float, **fields: Any) -> AcsRun:
        """The run of a program in the batch with which it fills the GPU as much as the paper's."""
        return cls(program, scheduler, gap_us, times=TIMES.get(program, 1), **fields)

    def problem(self) -> Problem:
        """The program alone on the paper's GPU."""
        return problem(self.program, self.gap_us, self.host_us, self.length, self.memory, self.times)

    def run(self, device: str) -> AcsOutcome:
        episode = play(SCHEDULERS[self.scheduler], self.problem(), 0, device=device, record="kernels")
        gpu, kernels = episode.problem.gpu, episode.timeline.kernels.dict()
        spent = 0.0
        for identity, began, ended in zip(
            kernels["identity"].astype(int), kernels["started_us"], kernels["ended_us"], strict=True
        ):
            print_ = episode.problem.kernels[identity].footprint
            blocks = min(episode.problem.kernels[identity].kernel.blocks, gpu.sms * print_.blocks_per_sm)
            spent += blocks * print_.warps * (ended - began)
        return AcsOutcome(episode.end_us, min(1.0, spent / (gpu.sms * gpu.limits.warps * episode.end_us)))


@functools.lru_cache(maxsize=32)
def problem(program: str, gap_us: float, host_us: float, length: float, memory: str = AGAIN, times: int = 1) -> Problem:
    """A program alone on the paper's GPU, whose application does nothing but launch."""
    workload = in_batches(load_program(program, memory), times)
    kernels = [
        msgspec.structs.replace(
            kernel,
            duration_us=length * kernel.duration_us,
            dram_bytes=None if kernel.dram_bytes is None else length * kernel.dram_bytes,
        )
        for kernel in workload.kernels
    ]
    longer = with_scaled_durations(workload, [length] * len(kernels))
    workload = msgspec.structs.replace(workload, kernels=tuple(kernels), **longer)
    gpu: GpuSpec = load_gpu(GPU)
    gpu = msgspec.structs.replace(gpu, timing=msgspec.structs.replace(gpu.timing, stream_gap_us=gap_us))
    scenario = make_scenario(
        {
            "name": "ACS", "gpu": GPU, "horizon_us": 1e7, "variation": False,
            "tenants": [tenant(workload.name, jobs=1, host_us=host_us)],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads={workload.name: workload})


def load_program(program: str, memory: str = AGAIN) -> Workload:
    """A recorded program, shipped as a workload or among the measurements."""
    measured = resources.files("gpusched_env.data") / "measurements/h200/programs" / f"{program}.workload.json.gz"
    with resources.as_file(measured) as path:
        workload = load_workload(str(path) if path.is_file() else program)
    return with_own_storage(workload) if memory == OWN else workload


CLASS_OF = {program: name for name, programs in PROGRAMS.items() for program in programs}


@functools.cache
def facts(program: str) -> dict[str, Any]:
    """A recorded program: its class, its batch over the recorded one, and the figures of its graph."""
    times = TIMES.get(program, 1)
    own = graph_figures(in_batches(load_program(program, OWN), times))
    return {
        "program": program,
        "kind": CLASS_OF[program],
        "times": times,
        **asdict(graph_figures(in_batches(load_program(program), times))),
        "own_parallelism": own.parallelism,
        "own_levels": own.levels,
    }
