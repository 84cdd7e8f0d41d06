"""FIKIT (Wu, arXiv 2311.10359v5, 2024) against default sharing.

The paper runs services of torchvision networks (detection, segmentation, classification), one of high priority and
others of low, on a GPU that it does not name, and reports ranges. Which networks it pairs, and how many services
share the GPU, is not known to us: its abstract says several. Here every ordered pair of the eleven recorded networks
of these kinds takes part, with one, two and three services of the second network. Host times, gaps and
synchronisations are those of the recordings; kernels are carried over to the GPU, an RTX 3090: the GPU of that time
whose time slice and context switch, which make up default sharing, were measured under such work (Gilman and Walls,
2021). Every service is a process with a context of its own, FIKIT's too. Beside it stands the GPU of the recordings,
with nothing carried over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.papers.fikit.figures import JUDGED_WITH, OVERHEAD, Figures
from gpusched_env.experiments.papers.fikit.pairs import outsiders
from gpusched_env.experiments.papers.fikit.picture import speedups_svg
from gpusched_env.experiments.papers.fikit.runs import DEFAULT, FIKIT, GPU, NOT_JUDGED
from gpusched_env.experiments.papers.fikit.tables import all_tables

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


class Paper(Figures):
    """The paper's headline figures, what they depend on, and what FIKIT loses where its profiles are wrong."""

    name = "fikit"
    title = "FIKIT"
    legend = (
        "Speed-up: completion time of the high-priority service under default sharing over that under FIKIT. "
        f"It is judged with {JUDGED_WITH} low-priority services; the first table says what other numbers give,"
        " and the paper's own is not known. Ours may exceed the published ranges by 10 % (speed-ups) and 0.1 "
        f"(ratio): the pairs are not the paper's; and the overhead must stay below {OVERHEAD:.0%}. *Judged*: "
        f"all networks but {', '.join(NOT_JUDGED[:-1])} and {NOT_JUDGED[-1]}. RetinaNet and SSD300 are not of "
        "the families that the paper is remembered to use; Mask R-CNN waits for the GPU box after box, and "
        "was recorded with random weights, which find as many boxes as there may be. The low-priority ratio "
        "is of completion times with one service and high-priority requests that come now and then. In which "
        "direction it is published is not said, so it holds if it does in either. The tables behind the "
        "second are of one low-priority service. *In mid-network*: the high-priority network waits for the "
        "GPU more often than its answer takes, and the low-priority one leaves the GPU idle for less than a "
        "tenth of its time alone."
    )

    def tables(self) -> list[Table]:
        return all_tables(self)

    def printed(self) -> list[Table]:
        return list(reversed(self.tables()))

    def pictures(self) -> dict[str, bytes]:
        """Speed-ups of all pairs by the number of low-priority services."""
        return {"speedups": speedups_svg(self.by_co_runners)}

    def attachments(self) -> dict[str, DataFrame]:
        """Pairs by the number of low-priority services; of one service on both GPUs; those outside the
        range, and why."""
        by_number = [of.assign(services=lows).to_dict("records") for lows, of in self.by_co_runners.items()]
        shared = self.pairs[["gpu", "high", "low", "speedup", DEFAULT, FIKIT, "high_alone_us"]]
        return {
            "co-runners": frame([row for rows in by_number for row in rows]),
            "pairs": shared,
            "outside": outsiders(self.by_gpu[GPU]),
        }
