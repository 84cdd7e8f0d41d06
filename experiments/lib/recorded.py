"""What was recorded on an H100 with several programs at once, and problems that simulate the same."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.frame import frame
from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.reading import Duration
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.workload import Workload

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


RECORDED_ON = "h100-sxm"
AT_WORK, WAITING = 0.64, 0.32
"""Share by which the other thread's host lengthens host times, ResNet-50 beside ResNet-50 as threads of one process of
PyTorch on an H100 (``sharing_modes.jsonl``). At work: recorded, 1.64 times the turnaround beside a training that hardly
uses the GPU (*hosts only*). While it waits for the GPU: what gives the recorded 1.42 times at batch 256, where the
training's host mostly waits (simulated 1.15 without)."""


def measurements(name: str, gpu: str = "h100") -> list[dict[str, Any]]:
    """Rows of a shipped measurement file (JSON lines); a header without the field ``what`` is left out.

    ``gpu``: the folder of those that were recorded on it.
    """
    text = (resources.files("gpusched_env.data") / "measurements" / gpu / name).read_text()
    return [row for row in map(json.loads, text.splitlines()) if "what" in row]


def recorded_turns(name: str) -> dict[tuple[str, ...], list[tuple[float, float]]]:
    """Mean times of an iteration, together and alone, by pairs of workloads that ran as time-sliced processes.

    ``name``: of a measurement file.
    """
    rows = measurements(name)
    alone_us = {row["tasks"][0]["model"]: row["tasks"][0]["mean_us"] for row in rows if row["what"] == "alone"}
    return {
        tuple(task["model"] for task in row["tasks"]): [(t["mean_us"], alone_us[t["model"]]) for t in row["tasks"]]
        for row in rows
        if row["what"] == "time_sliced"
    }


def tenant(workload: str, **fields: Any) -> dict[str, Any]:
    """A tenant that runs a recorded workload without a pause; ``fields`` replace others."""
    return {"name": workload, "workload": workload, "arrivals": {"kind": "closed-loop"}, **fields}


def situation(
    tenants: Sequence[Mapping[str, Any]],
    gpu: str = RECORDED_ON,
    horizon_us: float = math.inf,
    workloads: Mapping[str, Workload] | None = None,
    **fields: Any,
) -> Problem:
    """Tenants on a GPU.

    Args:
        tenants: fields of each, see :func:`tenant`.
        gpu: a name; workloads that were recorded on another one are carried over.
        horizon_us: when it ends; else when all jobs are done.
        workloads: that tenants may name besides the shipped ones.
        fields: further ones of the scenario.
    """
    scenario = make_scenario({"name": "situation", "gpu": gpu, "tenants": list(tenants), "horizon_us": 1.0, **fields})
    # Files must name a finite horizon, devices need none.
    return build_problem(msgspec.structs.replace(scenario, horizon_us=horizon_us), workloads=workloads)


def turnarounds_us(episode: Episode, skip: int = 0) -> list[NDArray[np.float64]]:
    """Turnarounds of each tenant's completed jobs, shape ``(jobs,)``, without its first ``skip`` (cold) ones."""
    jobs = episode.timeline.jobs.dict()
    took = jobs["completed_us"] - jobs["arrived_us"]
    return [took[(jobs["tenant"] == row) & (jobs["job"] >= skip)] for row in range(len(episode.problem.programs))]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFigures:
    """NaN where nothing was completed."""

    requests: int = 0
    """Completed ones, the first (cold) one left out."""
    turnaround_us: float = math.nan
    """Mean turnaround of the completed requests."""
    turnaround_p99_us: float = math.nan
    variation: float = math.nan
    """Standard deviation of the turnarounds over their mean."""
    waiting_us: float = math.nan
    """Time per request that its kernels were next in their stream before their first block started."""
    lengthening_us: float = math.nan
    """Time per request that its kernels ran longer than alone."""
    kernels: float = math.nan
    """Kernels per request."""


def requests_of(episode: Episode, tenant: int) -> dict[str, Any]:
    """Figures of :class:`RequestFigures` for a tenant (its row); none if it completed nothing.

    The episode was recorded with detail ``kernels`` or more.
    """
    took = turnarounds_us(episode, skip=1)[tenant]
    if not len(took):
        return {}
    kernels = finished_kernels(episode, tenant)
    timing = episode.problem.gpu.timing
    reached_us = kernels.launched_us + timing.launch_latency_us
    after_us = kernels.ended_us.shift(fill_value=-math.inf) + timing.stream_gap_us
    waited_us = (kernels.started_us - np.maximum(reached_us, after_us)).clip(lower=0.0)
    longer_us = kernels.ended_us - kernels.started_us - kernels.profiled_us
    begun = kernels.job.nunique()
    return {
        "requests": len(took),
        "turnaround_us": float(took.mean()),
        "turnaround_p99_us": float(np.percentile(took, 99)),
        "variation": float(took.std() / took.mean()),
        "waiting_us": float(waited_us.sum() / begun),
        "lengthening_us": float(longer_us.sum() / begun),
        "kernels": len(kernels) / begun,
    }


def work_rate(episode: Episode, tenant: int) -> float:
    """Profiled device time of a tenant's finished kernels over the length of the episode."""
    return float(finished_kernels(episode, tenant).profiled_us.sum()) / episode.end_us


def finished_kernels(episode: Episode, tenant: int) -> DataFrame:
    """Finished kernels of a tenant (its row) in order of issue: columns of the timeline, and their profiled duration.

    The episode was recorded with detail ``kernels`` or more.
    """
    kernels = frame(episode.timeline.kernels.dict())
    kernels = kernels[kernels["tenant"] == tenant].sort_values("id", ignore_index=True)
    profiled_us = np.array([profile.duration_us for profile in episode.problem.kernels])
    return kernels.assign(profiled_us=profiled_us[kernels["identity"].astype(int)])


@dataclass(frozen=True, slots=True)
class Turns:
    """Mean times of an iteration (us) of two processes."""

    recorded_us: tuple[float, ...]
    alone_us: tuple[float, ...]
    simulated_us: tuple[float, ...]

    @property
    def slowdowns(self) -> list[tuple[float, float]]:
        """Simulated and recorded time over that alone, of each."""
        together = zip(self.simulated_us, self.recorded_us, strict=True)
        return [(s / us, r / us) for (s, r), us in zip(together, self.alone_us, strict=True)]


@dataclass(frozen=True, slots=True)
class TimeSliced:
    """A recorded pair; host times are scaled to the processes' speed alone, as recorded on the same host."""

    recording: str
    """Name of a measurement file."""
    networks: tuple[str, ...]
    """Workloads of a pair in it."""
    horizon_us: float = math.inf
    first_us: float | None = None
    """The episode ends when the first network has run as many iterations as take this long alone; ``None``: never."""
    skip: int = 0
    """The number of first iterations that do not count."""

    def run(self, device: str) -> Turns:
        recorded_us, alone_us = zip(*recorded_turns(self.recording)[self.networks], strict=True)
        tenants = [tenant(name, iteration_us=us) for name, us in zip(self.networks, alone_us, strict=True)]
        if self.first_us is not None:
            tenants[0]["jobs"] = math.ceil(self.first_us / alone_us[0])
        episode = play("time-slicing", situation(tenants, horizon_us=self.horizon_us), seed=0, device=device)
        took = turnarounds_us(episode, self.skip)
        return Turns(recorded_us, alone_us, tuple(float(each.mean()) for each in took))


SCHEDULERS = {"streams": "pass-through", "priority": "priority-streams"}
"""The scheduler for each recorded mode of sharing."""
HORIZON_US, ITERATIONS = 150_000.0, 5
"""Networks are simulated this long, or for so many iterations of the longest."""
LONGER: Final = (1, 8, 64)
"""Multiples of that, until each network has run: beside long grids one can take 200 times as long as alone."""
PHYSICS: Final = 2
"""Version of the laws that recordings of networks are held against."""


@dataclass(frozen=True, slots=True)
class GraphPairs:
    """Networks side by side, each on a stream of its own."""

    networks: tuple[str, ...]
    """Workloads; urgency falls along them."""
    mode: str = "streams"
    """The recorded mode of sharing, one of :data:`SCHEDULERS`."""
    gpu: str = RECORDED_ON
    horizon_us: float | None = None
    """Simulated time; by default :data:`HORIZON_US` or more."""
    own: Shared[Mapping[str, Workload]] | None = field(default=None, repr=False)
    """Workloads that come before shipped ones of the same name."""

    def run(self, device: str) -> list[float]:
        """Median turnaround of each (us)."""
        own = {} if self.own is None else self.own.value
        horizon_us = self.horizon_us
        if horizon_us is None:
            longest_us = max(max((own.get(name) or load_workload(name)).iteration_us) for name in self.networks)
            horizon_us = max(HORIZON_US, ITERATIONS * longest_us)
        numbered = enumerate(self.networks)
        tenants = [tenant(name, launch="graph", priority=i, name=f"{name} ({i})") for i, name in numbered]
        took_us: list[NDArray[np.float64]] = []
        for longer in LONGER:
            problem = situation(tenants, self.gpu, longer * horizon_us, own, stream_priorities=[0, -5], physics=PHYSICS)
            episode = play(SCHEDULERS[self.mode], problem, seed=0, device=device)
            took_us = turnarounds_us(episode, skip=1)
            if all(map(len, took_us)):
                break
        return [float(np.median(each_us)) for each_us in took_us]


class GraphPair(msgspec.Struct, frozen=True, kw_only=True, tag="pair", tag_field="what"):
    """A recorded pair: a foreground network replayed one at a time beside a background one."""

    mode: str
    """``streams``: equal priority; ``priority``: the foreground is more urgent."""
    fg: str
    bg: str
    fg_p50_us: Duration
    bg_p50_us: Duration
    fg_solo_us: Duration
    bg_solo_us: Duration
    fg_p99_us: float | None = None

    @property
    def recorded(self) -> tuple[float, float]:
        """Slowdown of foreground and background: median time together over alone."""
        return self.fg_p50_us / self.fg_solo_us, self.bg_p50_us / self.bg_solo_us

    def simulated(self, runs: Mapping[GraphPairs, list[float]], **where: Any) -> tuple[float, float]:
        """The slowdowns by simulated ``runs``, which have the pair's :meth:`cells`."""
        (fg_us, bg_us), (fg_alone_us,), (bg_alone_us,) = (runs[cell] for cell in self.cells(**where))
        return fg_us / fg_alone_us, bg_us / bg_alone_us

    def cells(self, **where: Any) -> tuple[GraphPairs, GraphPairs, GraphPairs]:
        """Both together, the foreground alone, the background alone; ``where``: further fields of theirs."""
        return (
            GraphPairs((self.fg, self.bg), self.mode, **where),
            GraphPairs((self.fg,), **where),
            GraphPairs((self.bg,), **where),
        )


def graph_cells(pairs: Sequence[GraphPair], **where: Any) -> list[GraphPairs]:
    """All that pairs need, each once; those together, which take longest, come first."""
    cells = [pair.cells(**where) for pair in pairs]
    alone = (cell for _, *each in cells for cell in each)
    return [*(together for together, *_ in cells), *dict.fromkeys(alone)]


def recorded_pairs() -> list[GraphPair]:
    """All pairs that were recorded on an H100."""
    rows = measurements("model_pairs.jsonl")
    return [msgspec.convert(row, GraphPair) for row in rows if row["what"] == "pair"]
