"""Hand-written schedulers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpusched_env.baselines.acs import AcsHardware, AcsSoftware
from gpusched_env.baselines.bwlock import Bwlock
from gpusched_env.baselines.cfs import CompletelyFair
from gpusched_env.baselines.clockwork import Clockwork
from gpusched_env.baselines.conservative import Conservative
from gpusched_env.baselines.critical_path import CriticalPath
from gpusched_env.baselines.cuda_graph import CudaGraph
from gpusched_env.baselines.cusync import CuSync
from gpusched_env.baselines.cusync_in_forms import CuSyncInForms
from gpusched_env.baselines.cusync_predicted import CuSyncPredicted
from gpusched_env.baselines.cusync_search import CuSyncSearch
from gpusched_env.baselines.default_stream import DefaultStream
from gpusched_env.baselines.earliest_start import EarliestStart
from gpusched_env.baselines.eclip import Eclip
from gpusched_env.baselines.edf import EarliestDeadline
from gpusched_env.baselines.exclusive import Exclusive
from gpusched_env.baselines.fifo import Fifo
from gpusched_env.baselines.fikit import Fikit
from gpusched_env.baselines.gpreempt import GPreempt
from gpusched_env.baselines.gpucolo import GpuColo
from gpusched_env.baselines.gslice import Gslice
from gpusched_env.baselines.hindsight import Hindsight
from gpusched_env.baselines.in_order import InOrder
from gpusched_env.baselines.kernel_wise import KernelWise
from gpusched_env.baselines.kernel_wise_ioctl import KernelWiseIoctl
from gpusched_env.baselines.las import LeastAttainedService
from gpusched_env.baselines.lithos import LithOS
from gpusched_env.baselines.llf import LeastLaxity
from gpusched_env.baselines.mlfq import MultiLevelFeedback
from gpusched_env.baselines.model_predictive import ModelPredictive
from gpusched_env.baselines.model_wise import ModelWise
from gpusched_env.baselines.moore import Moore
from gpusched_env.baselines.mps import Mps
from gpusched_env.baselines.nexus import Nexus
from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.baselines.orion import Orion
from gpusched_env.baselines.paella import Paella
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.persistent_threads import PersistentThreads
from gpusched_env.baselines.preemptive_priority import PreemptivePriority
from gpusched_env.baselines.priority_streams import PriorityStreams
from gpusched_env.baselines.random_choice import RandomChoice
from gpusched_env.baselines.reef import Reef
from gpusched_env.baselines.registered import Registered
from gpusched_env.baselines.serial import Serial
from gpusched_env.baselines.sjf import ShortestJobFirst
from gpusched_env.baselines.sjf_clairvoyant import ShortestJobFirstClairvoyant
from gpusched_env.baselines.slo_aware_ideal import SloAwareIdeal
from gpusched_env.baselines.srpt import ShortestRemaining
from gpusched_env.baselines.static_budgets import StaticBudgets
from gpusched_env.baselines.stream_k import StreamK
from gpusched_env.baselines.tally import Tally
from gpusched_env.baselines.tgs import Tgs
from gpusched_env.baselines.time_slicing import TimeSlicing
from gpusched_env.baselines.triage import Triage
from gpusched_env.baselines.unlocked import Unlocked
from gpusched_env.baselines.wfq import WeightedFairQueueing
from gpusched_env.baselines.wspt import WeightedShortest
from gpusched_env.baselines.xsched import XSched
from gpusched_env.baselines.xsched_partition import XSchedPartition
from gpusched_env.scenarios.set_up import set_up_of
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.reads import Reads, reads_of

_OF_TENANTS: dict[str, Callable[..., Scheduler]] = {
    "pass-through": PassThrough,
    "priority-streams": PriorityStreams,
    "time-slicing": TimeSlicing,
    "mps": Mps,
    "exclusive": Exclusive,
    "fifo": Fifo,
    "sjf": ShortestJobFirst,
    "sjf-clairvoyant": ShortestJobFirstClairvoyant,
    "hindsight": Hindsight,
    "wspt": WeightedShortest,
    "srpt": ShortestRemaining,
    "edf": EarliestDeadline,
    "llf": LeastLaxity,
    "wfq": WeightedFairQueueing,
    "clockwork": Clockwork,
    "nexus": Nexus,
    "paella": Paella,
    "triage": Triage,
    "moore": Moore,
    "plan": ModelPredictive,
    "preemptive-priority": PreemptivePriority,
    "orion": Orion,
    "reef": Reef,
    "tally": Tally,
    "xsched": XSched,
    "xsched-partition": XSchedPartition,
    "cfs": CompletelyFair,
    "mlfq": MultiLevelFeedback,
    "las": LeastAttainedService,
    "lithos": LithOS,
    "tgs": Tgs,
    "gpreempt": GPreempt,
    "fikit": Fikit,
    "open-loop": OpenLoop,
    "conservative": Conservative,
    "gslice": Gslice,
    "gpucolo": GpuColo,
    "slo-aware-ideal": SloAwareIdeal,
    "cusync": CuSync,
    "cusync-predicted": CuSyncPredicted,
    "cusync-search": CuSyncSearch,
    "cusync-in-forms": CuSyncInForms,
    "stream-k": StreamK,
    "default-stream": DefaultStream,
    "model-wise": ModelWise,
    "kernel-wise": KernelWise,
    "kernel-wise-ioctl": KernelWiseIoctl,
    "eclip": Eclip,
    "unlocked": Unlocked,
    "bwlock": Bwlock,
    "static-budgets": StaticBudgets,
    "random": RandomChoice,
}
_OF_GRAPHS: dict[str, Callable[..., Scheduler]] = {
    "serial": Serial,
    "cuda-graph": CudaGraph,
    "acs-sw": AcsSoftware,
    "acs-hw": AcsHardware,
    "in-order": InOrder,
    "earliest-start": EarliestStart,
    "persistent-threads": PersistentThreads,
    "critical-path": CriticalPath,
}
SCHEDULERS: Final = Registered[Scheduler]("scheduler", {**_OF_TENANTS, **_OF_GRAPHS})
make_scheduler: Final = SCHEDULERS.make
describe: Final = SCHEDULERS.describe
default_options: Final = SCHEDULERS.options


def scheduler_names(windowed: bool | None = None) -> list[str]:
    """Names that :func:`make_scheduler` knows: the GPU's own mechanisms first, then policies.

    ``windowed``: only those for scenarios whose launches pass a window, of one program's kernels; or only those for
    others, of tenants that share a GPU.
    """
    return SCHEDULERS.names() if windowed is None else list(_OF_GRAPHS if windowed else _OF_TENANTS)


def honest_names(windowed: bool | None = None, *, hardware: bool = True) -> list[str]:
    """Names of :func:`scheduler_names` that know no more than a scheduler can.

    ``hardware``: also those that need hardware which no GPU of today has.
    """
    honest = [name for name in scheduler_names(windowed) if not SCHEDULERS.is_clairvoyant(name)]
    return [name for name in honest if hardware or not set_up_of(SCHEDULERS.maker(name)).hardware]


def means(name: str) -> tuple[Reads, tuple[str, ...]]:
    """What a scheduler reads (:mod:`gpusched_env.scheduling.reads`), and what it may do besides launching.

    Raises:
        InputError: no scheduler of that name.
    """
    found = SCHEDULERS.maker(name)
    return reads_of(found) or (), set_up_of(found).commands
