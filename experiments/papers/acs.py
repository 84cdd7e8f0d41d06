"""ACS (Durvasula et al., arXiv 2401.12377, 2024; PACT 2024 as ACE): concurrent kernels of irregular graphs.

The paper runs Brax physics steps, dynamic and static networks of batch 1 on an RTX 3060 and in a simulator of an
RTX 3070 (46 SMs at 1.4 GHz), and reports speed-ups over one stream as class means and maxima. Here recorded PyTorch
programs stand in, each launch with the memory that it reads and writes; kernels are carried over from an H100. The
application launches every 2.5 us, of the 2 to 5 us that such a host takes. As in the simulator that the paper
used, a kernel in a stream starts 4.4 us (5,000 cycles) after the one before it; whether the paper kept that default it
does not say, so all is shown with the 1 us of a real stream, too.

The programs are not the paper's. Kernels of PyTorch in half precision on an H100 last 1 to 4 us; how long the paper's
last is in pictures only, but with a speed-up of 1.66 for a launch and a synchronisation of at least 5 us each they must
be several times as long. And the memory that these programs touch lets 1.1 to 1.5 kernels run at once, by their longest
chains, where the paper gains a factor of two. So what is gained here is mostly the time between kernels of a stream: a
window in hardware, which needs none, gains more than in the paper, one in software less. With so little to choose from,
the oldest ready kernel is as good as that of the longest chain. Where the host launches every 2.5 us it is the limit of
physics steps, whose kernels are shorter, and a larger window gains nothing (see the table of hosts).

How long the paper's kernels are decides most of its figures (see the table of lengths): it ran single precision on a
smaller GPU. With kernels four times as long as these, all published means of networks come out within 15 %, and those
of physics steps in hardware; physics steps in software gain less than published at any length.

*Queued* is no part of the paper: the same window with up to eight launches a stream, where a kernel may follow what it
waits for without a synchronisation (the scheduler `earliest-start`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.judged import Simulation as AnyCell
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import tenant
from gpusched_env.experiments.lib.verdicts import Target, record, table_of, table_of_numbers, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.carry_over import stretched
from gpusched_env.workload.graph_figures import graph_figures
from gpusched_env.workload.segments import CHECK_US, check_us

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

GPU = "rtx-3070"
HOST_US = 2.5
HOSTS_US = (0.0, 1.0, 2.5, 5.0)
SIMULATOR_GAP_US, STREAM_GAP_US = 4.4, 1.0
LENGTHS = (1.0, 2.0, 3.0, 4.0, 8.0)
"""Durations of kernels over the recorded ones: the paper's are longer, nobody says by how much."""
RL, DYNAMIC, STATIC = "deep RL", "dynamic networks", "static networks"
PROGRAMS = {
    RL: (
        "bodies6_step_b2048", "bodies9_step_b2048", "bodies11_step_b2048", "bodies20_step_b2048",
        "physics_step_b4096",
    ),
    DYNAMIC: (
        "dynamic_routing_input0_b4", "dynamic_routing_input1_b4", "dynamic_routing_input2_b4", "condconv_b0_infer_b1",
        "instanas_infer_b1",
    ),
    STATIC: ("nasnetalarge_infer_b1", "amoebanet_infer_b1", "randwire_infer_b1"),
    "other networks": ("mobilenetv3_infer_b1", "resnet50_infer_b1", "bert_infer_b1_s128", "lstm_infer_b16_t50"),
}  # fmt: skip
"""Recorded programs by the paper's classes; the last one has no counterpart there."""
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
BY_LENGTH = (SERIAL, GRAPH, BEFORE, f"{SW}, 32", f"{HW}, 32", PERSISTENT)
"""Schedulers that are also run with longer kernels."""
MEANS = {(RL, SW): 1.66, (DYNAMIC, SW): 1.05, (DYNAMIC, HW): 1.30, (STATIC, SW): 1.16, (STATIC, HW): 1.31}
"""Of the programs of a class, in the paper's simulator; its bars exist as pictures only."""
WITHIN = 0.15
PROGRAM_COLUMNS = (
    "program = {program} | class = {kind} | kernels = {kernels} | levels = {levels} | "
    "parallelism = {parallelism:.2f} | us a kernel = {duration_us:.1f} | blocks = {blocks:.0f} | "
    "segments = {segments:.1f}"
)
PROGRAM_NOTE = "Medians of durations (as recorded) and of blocks, mean of segments; copies are left out."
CHECK_COLUMNS = "window = {what[0]} | segments = {what[1]} | published = {published:.0f} ns | charged = {ours:.0f} ns"


@dataclass(frozen=True, slots=True)
class AcsOutcome:
    """Of one run."""

    time_us: float
    """From the start of the program to its end."""
    occupancy: float
    """Warps of resident blocks over the GPU's, mean over the time: of each kernel as many as fit, while it ran."""


@dataclass(frozen=True, slots=True)
class AcsRun:
    """A program under a scheduler."""

    program: str
    scheduler: str
    """Of :data:`SCHEDULERS`."""
    gap_us: float
    """Between two kernels of a stream."""
    host_us: float = HOST_US
    """From one launch of the application to the next."""
    length: float = 1.0
    """Of :data:`LENGTHS`."""

    def problem(self) -> Problem:
        """The program alone on the paper's GPU."""
        return problem(self.program, self.gap_us, self.host_us, self.length)

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
        return AcsOutcome(episode.end_us, spent / (gpu.sms * gpu.limits.warps * episode.end_us))


@functools.lru_cache(maxsize=32)
def problem(program: str, gap_us: float, host_us: float, length: float) -> Problem:
    """A program alone on the paper's GPU, whose application does nothing but launch."""
    workload = load_workload(program)
    kernels = [
        msgspec.structs.replace(
            kernel,
            duration_us=length * kernel.duration_us,
            dram_bytes=None if kernel.dram_bytes is None else length * kernel.dram_bytes,
        )
        for kernel in workload.kernels
    ]
    longer = stretched(workload, [length] * len(kernels))
    workload = msgspec.structs.replace(workload, kernels=tuple(kernels), **longer)
    gpu: GpuSpec = load_gpu(GPU)
    gpu = msgspec.structs.replace(gpu, timing=msgspec.structs.replace(gpu.timing, stream_gap_us=gap_us))
    scenario = make_scenario(
        {
            "name": "ACS", "gpu": GPU, "horizon_us": 1e7, "variation": False,
            "tenants": [tenant(program, jobs=1, host_us=host_us)],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads={program: workload})


CLASS_OF = {program: name for name, programs in PROGRAMS.items() for program in programs}


@functools.cache
def facts(program: str) -> dict[str, Any]:
    """A recorded program: its class, and the figures of its graph."""
    return {"program": program, "kind": CLASS_OF[program], **asdict(graph_figures(load_workload(program)))}


class Paper(Reproduction):
    """Speed-ups over one stream, their means by class, and what they depend on."""

    name = "acs"
    title = "ACS"
    legend = (
        "*Speed-up*: time of the program in one stream over that under the scheduler. *Parallelism*: sum of the "
        "kernels' durations over the longest chain of them, which bounds the gain where kernels take all of the time; "
        "*levels*: kernels of the longest chain. What is gained beyond that is time between kernels of a stream."
    )

    @staticmethod
    def cells() -> Sequence[AnyCell]:
        return (
            [
                AcsRun(program, scheduler, gap_us)
                for gap_us in (SIMULATOR_GAP_US, STREAM_GAP_US)
                for program in CLASS_OF
                for scheduler in SCHEDULERS
            ]
            + [
                AcsRun(program, scheduler, SIMULATOR_GAP_US, host_us)
                for host_us in HOSTS_US
                for program in PROGRAMS[RL]
                for scheduler in (SERIAL, *(f"{HW}, {size}" for size in SIZES))
                if host_us != HOST_US
            ]
            + [
                AcsRun(program, scheduler, SIMULATOR_GAP_US, length=length)
                for length in LENGTHS
                for program in CLASS_OF
                for scheduler in BY_LENGTH
                if length != 1.0
            ]
        )

    @functools.cached_property
    def _runs(self) -> DataFrame:
        runs = self.to_frame(AcsRun)
        return runs[(runs.host_us == HOST_US) & (runs.length == 1.0)].assign(kind=runs.program.map(CLASS_OF))

    @property
    def by_host(self) -> DataFrame:
        """Mean speed-ups of physics steps by the application's time from launch to launch (us) and window."""
        runs = self.to_frame(AcsRun)
        of_steps = runs.program.isin(PROGRAMS[RL]) & (runs.length == 1.0)
        runs = runs[(runs.gap_us == SIMULATOR_GAP_US) & of_steps]
        times = runs.pivot(index=["host_us", "program"], columns="scheduler", values="time_us")
        found = times.rdiv(times[SERIAL], axis=0)[[f"{HW}, {size}" for size in SIZES]]
        return found.groupby(level="host_us").mean()

    @property
    def by_length(self) -> DataFrame:
        """Mean speed-ups by class and length of kernels."""
        runs = self.to_frame(AcsRun)
        runs = runs[(runs.gap_us == SIMULATOR_GAP_US) & (runs.host_us == HOST_US) & runs.scheduler.isin(BY_LENGTH)]
        runs = runs.assign(kind=runs.program.map(CLASS_OF))
        times = runs.pivot(index=["kind", "length", "program"], columns="scheduler", values="time_us")
        found = times.rdiv(times[SERIAL], axis=0)[list(BY_LENGTH[1:])]
        return found.groupby(level=["kind", "length"]).mean().loc[list(PROGRAMS)]

    @functools.cached_property
    def speedups(self) -> DataFrame:
        """By gap, class and program; a column a scheduler."""
        rows = ["gap_us", "kind", "program"]
        times = self._runs.pivot(index=rows, columns="scheduler", values="time_us")
        in_order = self._runs[rows].drop_duplicates().itertuples(index=False, name=None)
        return times.rdiv(times[SERIAL], axis=0)[list(SCHEDULERS)].loc[list(in_order)]

    @functools.cached_property
    def occupancy(self) -> DataFrame:
        """By class, with the simulator's gap; a column a scheduler."""
        runs = self._runs[self._runs.gap_us == SIMULATOR_GAP_US]
        found = runs.pivot_table(index="kind", columns="scheduler", values="occupancy", sort=False)
        return found[list(SCHEDULERS)]

    @property
    def means(self) -> DataFrame:
        """Mean speed-ups by gap and class."""
        return self.speedups.groupby(level=["gap_us", "kind"], sort=False).mean()

    def checks(self) -> list[Target]:
        found, means = (of.loc[SIMULATOR_GAP_US] for of in (self.speedups, self.means))
        hardware, software, rl = found[f"{HW}, 32"], found[f"{SW}, 32"], found.loc[RL]
        wider = means.loc[RL, f"{HW}, 32"] / means.loc[RL, f"{HW}, 16"] - 1.0
        near = found.loc[STATIC, BEFORE] / hardware.loc[STATIC]
        return [
            *(
                Target(f"{of}, mean of {kind}", mean, mean, float(means.loc[kind, f"{of}, 32"]), WITHIN * mean)
                for (kind, of), mean in MEANS.items()
            ),
            Target("ACS-HW, largest of deep RL", 2.19, 2.19, float(hardware.loc[RL].max()), WITHIN * 2.19),
            Target("ACS-HW over ACS-SW, least of all programs", 1.0, 10.0, float((hardware / software).min())),
            Target("CUDA graphs made for each input, most of deep RL", 0.0, 1.0, float(rl[GRAPH].max())),
            Target("the same, most of dynamic networks", 0.0, 1.0, float(found.loc[DYNAMIC, GRAPH].max())),
            Target("CUDA graphs made before over ACS-HW, static networks", 1.0, 1.0, float(near.mean()), WITHIN),
            Target("persistent threads, mean of deep RL", 0.0, 1.0, float(rl[PERSISTENT].mean())),
            Target("gain of a window of 32 over one of 16, deep RL", 0.0, 0.1, float(wider)),
        ]

    def summary(self) -> str:
        targets, means = self.checks(), self.means.loc[SIMULATOR_GAP_US]
        by_class = ", ".join(f"{kind} {means.loc[kind, f'{HW}, 32']:.2f}" for kind in (RL, DYNAMIC, STATIC))
        held = sum(target.holds for target in targets)
        return f"{held} of {len(targets)} figures come out; mean speed-up of ACS-HW: {by_class}"

    def data(self) -> dict[str, Any]:
        return {
            "targets": [record(target) for target in self.checks()],
            "programs": [facts(program) for program in CLASS_OF],
            "speedups": self.speedups.reset_index().to_dict("records"),
            "means": self.means.reset_index().to_dict("records"),
            "by_length": self.by_length.reset_index().to_dict("records"),
            "by_host_us": self.by_host.reset_index().to_dict("records"),
            "occupancy": self.occupancy.reset_index().to_dict("records"),
            "runs": self.to_frame(AcsRun).to_dict("records"),
        }

    def tables(self) -> list[Table]:
        checks = [{"what": key, "published": 1e3 * us, "ours": 1e3 * check_us(*key)} for key, us in CHECK_US.items()]
        return [
            targets_table("Published figures and ours", self.checks()),
            *(
                table_of_numbers(f"Mean speed-up by class, {gap_us:g} us between kernels of a stream", ("class",), of)
                for gap_us, of in ((gap_us, self.means.loc[gap_us]) for gap_us in (SIMULATOR_GAP_US, STREAM_GAP_US))
            ),
            table_of_numbers("Mean speed-up by the length of kernels", ("class", "times as long"), self.by_length),
            table_of_numbers("Deep RL by the host's time for a launch", ("us a launch",), self.by_host),
            table_of_numbers("Occupancy", ("class",), self.occupancy, ".1%"),
            table_of("Programs", [facts(program) for program in CLASS_OF], PROGRAM_COLUMNS, PROGRAM_NOTE),
            table_of("Time of a check", checks, CHECK_COLUMNS),
        ]

    def details(self) -> list[Table]:
        heads = ("class", "program")
        return [
            table_of_numbers(f"Speed-ups, {gap_us:g} us between kernels of a stream", heads, self.speedups.loc[gap_us])
            for gap_us in (SIMULATOR_GAP_US, STREAM_GAP_US)
        ]
