"""SPAWN (Tang et al., HPCA 2017): which child kernels to launch and which work to leave in the parent's threads.

The paper simulates thirteen benchmarks on a Kepler and reports speed-ups over flat programs, which launch nothing. Here
the benchmarks are the same algorithms on generated inputs ([dynamic parallelism](dynamic-parallelism.md)), on a device
at the granularity of warps ([rules](warp-devices.md)).

What the paper does not give is fixed as follows, for all benchmarks alike unless it says otherwise:

* *The machine* ([constants](../gpusched_env/games/child_launches/hardware/warp_machine.py)): bandwidths and latencies
  from its Table I and Kepler's data; launches from its Table II. That a kernel with nothing to do holds
  its hardware queue for about 4,000 cycles was found from benchmarks that are bound by the queues, so their bars are
  not independent of it.
* *An iteration*, per application ([loops](../gpusched_env/games/child_launches/workload/launches.py)): instructions,
  chained loads and lines of memory are counted from the loop's source; hit rates are the paper's (Figure 17).
* *Inputs*, by what the paper's figures show of their structure, never by a speed-up: launches of Figure 18, occupancies
  of Figure 16 with the program's own threshold, and those with few launches of some.
* *SPAWN's own open choices* are options of the scheduler, and their defaults are those whose launches come nearest to
  Figure 18; see the ablation. That only requests above the program's own threshold reach the launch call follows from
  Figure 18, where SPAWN launches no more than Baseline-DP on all thirteen.

Offline-Search tries the thresholds of Figure 5, some between, and none at all. DTBL is in the paper's Figure 21,
aggregation is later work.

So Figure 18 is shown and judges nothing, nor do occupancies that inputs were chosen by. Rank correlations are not
judged either: a third of the speed-ups lie between 1.0 and 1.3, where ranks hang on a few percent, and any constant
moves them.

Mandelbrot gains nothing here, whichever thread takes which tile: how threads map to work changes neither its launches
nor its occupancy, so that these cannot choose the map, and no map that was tried comes near its bars. Launching few
requests of JOIN-uniform cannot gain (1.36 in the paper, with at most 50 launches). Baseline-DP of AMR and of BFS-
graph500 loses less than published: how the paper's mesh refines is not known, and its children stay on their SM twice
as long. AMR goes on gaining with the offloaded share, where the paper's falls from 4 % on, and SSSP-citation collapses
at 53 %, where the paper's does not. Block sizes (Figure 7) hardly matter here, and a queue a child gains nothing for
GC-graph500 (4.09 in the paper, Figure 8). SA has three published speed-ups: 4.38 (Figure 15), 6.96 (Figure 21) and 8.60
(Figure 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.pages import bars_svg
from gpusched_env.games.child_launches.papers.spawn.figures import SpawnFigures, outcome
from gpusched_env.games.child_launches.papers.spawn.marks import MARKS
from gpusched_env.games.child_launches.papers.spawn.runs import BARS
from gpusched_env.games.child_launches.papers.spawn.tables import all_tables


class Paper(SpawnFigures):
    """Speed-ups over flat programs, and what they depend on."""

    name = "spawn"
    title = "SPAWN"
    marks = MARKS
    legend = (
        "*Speed-up*: time of the flat program over that under the scheduler. *Correlation*: Spearman's, of our "
        "speed-ups with the paper's over the thirteen benchmarks. Where two figures stand in a cell, ours is first."
    )

    def outcome(self) -> str:
        return outcome(self)

    def tables(self) -> Sequence[Table]:
        return all_tables(self)

    def printed(self) -> Sequence[Table]:
        return self.tables()[1::-1]

    def pictures(self) -> dict[str, bytes]:
        """Speed-ups as bars, beside the paper's."""
        bars = self.bars("")
        return {"speedup": bars_svg({BARS[bar]: (bars[bar].to_dict(), self.theirs[bar].to_dict()) for bar in BARS})}
