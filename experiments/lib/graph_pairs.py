"""Pairs of networks that share a GPU as CUDA graphs, each replayed back to back: as recorded, and simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import numpy as np

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import RECORDED_ON, measurements, situation, tenant, turnarounds_us
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.workload import Workload

SCHEDULERS = {"streams": "pass-through", "priority": "priority-streams"}
"""Which scheduler is a recorded mode of sharing."""
HORIZON_US, ITERATIONS = 150_000.0, 5
"""Networks are simulated this long, or for so many iterations of the longest."""
Positive = Annotated[float, msgspec.Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class GraphPairs:
    """Networks side by side, each on a stream of its own."""

    networks: tuple[str, ...]
    """Workloads; urgency falls along them."""
    mode: str = "streams"
    """Of :data:`SCHEDULERS`."""
    gpu: str = RECORDED_ON
    horizon_us: float | None = None
    """How long to simulate; by default :data:`HORIZON_US` or more."""
    own: Shared[Mapping[str, Workload]] | None = field(default=None, repr=False)
    """Workloads that come before the shipped ones."""

    def run(self, device: str) -> list[float]:
        """Median turnaround of each (us)."""
        horizon_us = self.horizon_us
        own = {} if self.own is None else self.own.value
        if horizon_us is None:
            longest_us = max(max((own.get(name) or load_workload(name)).iteration_us) for name in self.networks)
            horizon_us = max(HORIZON_US, ITERATIONS * longest_us)
        numbered = enumerate(self.networks)
        tenants = [tenant(name, launch="graph", priority=i, name=f"{name} ({i})") for i, name in numbered]
        problem = situation(tenants, self.gpu, horizon_us, own, stream_priorities=[0, -5])
        episode = play(SCHEDULERS[self.mode], problem, seed=0, device=device)
        return [float(np.median(took)) for took in turnarounds_us(episode, skip=1)]


class GraphPair(msgspec.Struct, frozen=True, kw_only=True, tag="pair", tag_field="what"):
    """A recorded pair: a foreground network replayed one at a time beside a background one."""

    mode: str
    """``streams``: equal priority; ``priority``: the foreground is more urgent."""
    fg: str
    bg: str
    fg_p50_us: Positive
    bg_p50_us: Positive
    fg_solo_us: Positive
    bg_solo_us: Positive
    fg_p99_us: float | None = None

    @property
    def recorded(self) -> tuple[float, float]:
        """Slowdown of foreground and background: median time together over alone."""
        return self.fg_p50_us / self.fg_solo_us, self.bg_p50_us / self.bg_solo_us

    def simulated(self, runs: Mapping[GraphPairs, list[float]], **where: Any) -> tuple[float, float]:
        """The same of ``runs``, which have the pair's :meth:`cells`."""
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
    """All that were recorded on an H100."""
    rows = measurements("model_pairs.jsonl")
    return [msgspec.convert(row, GraphPair) for row in rows if row["what"] == "pair"]
