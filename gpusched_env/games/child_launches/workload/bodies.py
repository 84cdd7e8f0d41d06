"""What a turn of each application's loop does, counted from its source, and how often L2 has the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.hardware.warp_machine import LoopBody

BODIES: Final[dict[str, LoopBody]] = {
    # The mark of the neighbour is anywhere in memory, for parents and children alike.
    "BFS": LoopBody(chain=1, dependent=4, instructions=12, parent_lines=1, child_lines=1),
    # The neighbour's distance; then, where the way is shorter, an atomic minimum: one edge in five, on average over the
    # benchmarks' inputs (9 and 27 %).
    "SSSP": LoopBody(chain=1.2, dependent=8, instructions=20, parent_lines=1.2, child_lines=1.2),
    # The neighbour's colour and number.
    "GC": LoopBody(chain=1, dependent=8, instructions=24, parent_lines=1, child_lines=1),
    # A lane of a parent reads a bucket of its own, children share one.
    "JOIN": LoopBody(chain=1, dependent=4, instructions=12, parent_lines=1, child_lines=1 / 16),
    # A stencil on the cells of a refined grid, streamed.
    "AMR": LoopBody(chain=1, dependent=10, instructions=30, parent_lines=0.5, child_lines=0.25),
    # Arithmetic alone: z² + c.
    "Mandel": LoopBody(chain=0, dependent=8, instructions=12, parent_lines=0, child_lines=0),
    # An element of a row of B: its neighbours are in the same lane's row, or in the neighbouring lanes.
    "MM": LoopBody(chain=1, dependent=4, instructions=10, parent_lines=0.25, child_lines=1 / 32),
    # A row of a banded recurrence; its cells lie in shared memory.
    "SA": LoopBody(chain=0, dependent=10, instructions=60, parent_lines=0.1, child_lines=0.1),
}
"""By application, the first part of a benchmark's name."""
L2_HITS: Final[dict[str, float]] = {
    "AMR": 0.036, "BFS-citation": 0.813, "BFS-graph500": 0.739, "SSSP-citation": 0.802, "SSSP-graph500": 0.923,
    "JOIN-uniform": 0.743, "JOIN-gaussian": 0.785, "Mandel": 0.290, "GC-citation": 0.747, "GC-graph500": 0.968,
    "MM-small": 0.998, "MM-large": 0.998, "SA-thaliana": 0.886, "SA-elegans": 0.886,
}  # fmt: skip
"""Share of lines that L2 has: the mean over the schemes of SPAWN's Figure 17 (elegans: as thaliana)."""


def body_of(benchmark: str) -> LoopBody:
    """The loop of a benchmark, by its name; random ones have the mean hit rate of their application.

    Raises:
        InputError: no such application.
    """
    application = benchmark.partition("-")[0]
    if application not in BODIES:
        raise InputError(f"no loop is known of {benchmark!r}; {did_you_mean(application, BODIES)}")
    rates = [rate for name, rate in L2_HITS.items() if name.partition("-")[0] == application]
    return replace(BODIES[application], miss=1.0 - L2_HITS.get(benchmark, sum(rates) / len(rates)))
