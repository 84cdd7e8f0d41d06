"""SPAWN (Tang et al., HPCA 2017): which child kernels to launch and which work to leave in the parent's threads.

The paper simulates thirteen benchmarks on a Kepler and reports speed-ups over flat programs, which launch nothing. Here
the benchmarks are the same algorithms on generated inputs ([dynamic parallelism](dynamic-parallelism.md)), on a device
at the granularity of warps ([rules](warp-devices.md)).

What the paper does not give is fixed as follows, for all benchmarks alike unless it says otherwise:

* *The machine* ([constants](../gpusched_env/games/child_launches/hardware/warp_machine.py)): bandwidths and latencies
  from its Table I and Kepler's data; launches from its Table II. Nothing lies between two kernels of a hardware queue,
  as in GPGPU-Sim, with which the paper simulates. What a warp takes before its loop, 4,000 cycles, is fitted to the
  cycles an extra child of four programs, so neither these nor the bars of Baseline-DP are independent of it.
* *An iteration*, per application ([loops](../gpusched_env/games/child_launches/workload/launches.py)): instructions,
  chained loads and lines of memory are counted from the loop's source, SSSP's from dragon_li, the suite of DTBL's
  authors; hit rates are the paper's (Figure 17).
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

*Cycles an extra child*: what Baseline-DP takes longer than Offline-Search for each child that it launches more, by
Figures 15 and 18, which give quotients of the flat program's time; in cycles it is with ours. One set of constants does
not fit. A child of BFS-graph500 costs half of the paper's, one of JOIN-gaussian or SSSP-citation more than the paper's,
and SSSP-graph500 does best with all children, so that an extra one costs nothing. What the paper's BFS does besides is
not known: dragon_li's has a second kernel in every level, which removes vertices found twice without an atomic, so that
some are searched twice, and the paper launches 24,444 children where 15.4 thousand vertices have more than 32 edges. A
wait between kernels makes it worse: it costs children of one block as much as those of nine.

*AMR* is made from launches and shares alone. Children run beside its parents for nothing until they fill the queues, so
its curve is level to 30 % and then falls, where the paper's falls from 4 % on; Baseline-DP loses nothing (0.51 in the
paper). SPAWN launches six times as many children as the paper's: all that ask until the first child ends, and then
whatever its queue lets through, as 96 iterations are taken to last 96 times as long as a child's warp, prologue
included. JOIN-uniform launches on after its sample for the same reason. With warps that count as at most 1,024 cycles
both launch less, but BFS and SSSP then launch a fifth of the paper's.

Mandelbrot gains nothing here, whichever thread takes which tile: how threads map to work changes neither its launches
nor its occupancy, so that these cannot choose the map, and no map that was tried comes near its bars. Launching few
requests of JOIN-uniform cannot gain (1.36 in the paper, with at most 50 launches). MM's two inputs differ in size alone
here, so their speed-ups are one; the paper's are 2.44 and 3.28. Block sizes (Figure 7) hardly matter here, and a queue
a child gains nothing for GC-graph500 (4.09 in the paper, Figure 8). SA has three published speed-ups: 4.38 (Figure 15),
6.96 (Figure 21) and 8.60 (Figure 5); the first is the last over that of 2 % (1.96), so Figure 15 may not be over flat.
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
