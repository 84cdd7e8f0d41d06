"""FIKIT (Wu, arXiv 2311.10359v5, 2024) against default sharing.

The paper runs services of torchvision networks (detection, segmentation, classification), one of high priority and
others of low, on a GPU that it does not name, and reports ranges. Which networks it pairs, and how many services
share the GPU, is not known to us: its abstract says several. Here every ordered pair of the eleven recorded networks
of these kinds takes part, with one, two and three services of the second network. Host times, gaps and
synchronisations are those of the recordings; kernels are carried over to the GPU, an RTX 3090: the GPU of that time
whose time slice and context switch, which make up default sharing, were measured under such work (Gilman and Walls,
2021). Every service is a process with a context of its own, FIKIT's too, and FIKIT leaves gaps of less than 100 us
idle, as it is remembered: hardly any gap is longer. Beside it stands the GPU of the recordings, an H100, with nothing
carried over, services under MPS and a threshold of 3 us, below most gaps: there gaps are filled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.papers.fikit.figures import FikitFigures
from gpusched_env.experiments.papers.fikit.marks import MARKS
from gpusched_env.experiments.papers.fikit.pairs import outsiders, speedups_svg
from gpusched_env.experiments.papers.fikit.runs import DEFAULT, GPU, PROCESSES, SET_APART
from gpusched_env.experiments.papers.fikit.tables import all_tables, outcome

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


class Paper(FikitFigures):
    """The paper's headline figures, what they depend on, and what FIKIT loses where its profiles are wrong."""

    name = "fikit"
    title = "FIKIT"
    marks = MARKS
    legend = (
        "Speed-up: completion time of the high-priority service under default sharing over that under FIKIT. *Set "
        f"apart*: pairs with {', '.join(SET_APART[:-1])} or {SET_APART[-1]}. RetinaNet and SSD300 are not of the "
        "families that the paper is remembered to use; Mask R-CNN waits for the GPU box after box, and was recorded "
        "with random weights, which find as many boxes as there may be. The low-priority ratio is of completion times "
        "with one service and high-priority requests that come now and then. In which direction it is published is "
        "not said, so it comes out if it does in either. *In mid-network*: the high-priority network waits for the GPU "
        "more often than its answer takes, and the low-priority one leaves the GPU idle for less than a tenth of its "
        "time alone."
    )

    def outcome(self) -> str:
        return outcome(self)

    def tables(self) -> list[Table]:
        return all_tables(self)

    def printed(self) -> list[Table]:
        return list(reversed(self.tables()))

    def pictures(self) -> dict[str, bytes]:
        """Speed-ups of all pairs by the number of low-priority services."""
        shown = {lows: of for (setting, lows), of in self.by_co_runners.items() if setting == PROCESSES}
        return {"speedups": speedups_svg(shown)}

    def attachments(self) -> dict[str, DataFrame]:
        """Pairs by setting and number of low-priority services; of one service on both GPUs; those outside the
        range, and why."""
        by_number = [
            of.assign(services=lows, setting=setting.text).to_dict("records")
            for (setting, lows), of in self.by_co_runners.items()
        ]
        shared = self.pairs[["gpu", "high", "low", "speedup", DEFAULT, "fikit_us", "high_alone_us"]]
        return {
            "co-runners": frame([row for rows in by_number for row in rows]),
            "pairs": shared,
            "outside": outsiders(self.by_gpu[GPU]),
        }
