"""The columns of an observation of ``gpusched/DynamicParallelism-v0``: what the controller of launches can know."""

from __future__ import annotations

from typing import Final

from gpusched_env.envs.features import FLAG, RATIO, SHARE, Feature

LOG_TOP: Final = 1e8
"""What a column of :data:`LOG` shows as 1."""
LOG: Final = "log"
"""Unit of counts and of times in core cycles: ``log1p(x) / log1p(10^8)``, at most 1."""
COLUMNS_NOTE: Final = """\
### Columns
Sources are fields of `gpusched_env.games.child_launches.view.RequestView`. `log`: log1p(x) / log1p(10^8) of a count or
of a time in core cycles, at most 1.
"""
WORST: Final = 8.0
"""Estimates that are further apart than ``exp`` of this count as that."""


class LaunchFeature(Feature):
    """The request, what SPAWN's hardware counts, the queues of the GPU, and what a launch costs."""

    WORK = ("serial iterations of the thread's loop", LOG, 0, 1, "work")
    ITEMS = ("threads of the child", LOG, 0, 1, "items")
    BLOCKS = ("its blocks", LOG, 0, 1, "blocks")
    LARGEST = ("largest work among the lanes that call", LOG, 0, 1, "largest_work")
    SERIAL = (
        "largest work that a lane of the warp does itself in this turn, as decided so far",
        LOG,
        0,
        1,
        "serial_work",
    )
    CALLS = ("lanes of the warp that call now, of 32", SHARE, 0, 1, "calls")
    LEFT = ("of these, asked about after this one, of 32", SHARE, 0, 1, "calls, position")
    SPAWNED = ("of these, that will launch, of 32", SHARE, 0, 1, "spawned")
    NESTING = ("0: a thread of the host's kernel asks; 1: one of a child, and so on", RATIO, 0, 1, "nesting")
    KNOWN = ("1 if a child block has ended, so that there are times", FLAG, 0, 1, "blocks_ended")
    ENDED = ("child blocks that ended", LOG, 0, 1, "blocks_ended")
    INSIDE = ("child blocks between the decision to launch them and their end", LOG, 0, 1, "inside")
    RUNNING = ("child blocks on SMs", LOG, 0, 1, "running")
    MEAN_RUNNING = ("the same, mean over all windows in which any ran", LOG, 0, 1, "busy_running")
    LAST_RUNNING = ("the same, mean of the last window in which any ran", LOG, 0, 1, "last_running")
    BLOCK = ("mean residency of child blocks that ended, cycles", LOG, 0, 1, "block_ps")
    RECENT_BLOCK = ("the same, an exponential mean of the last 16 or so", LOG, 0, 1, "recent_block_ps")
    WARP = ("mean residency of child warps of the last window in which any ended, cycles", LOG, 0, 1, "warp_ps")
    WARP_4096 = ("the same, each counted as 4,096 cycles at most", LOG, 0, 1, "warp_4096_ps")
    WAITING = ("children without a hardware queue", LOG, 0, 1, "waiting")
    QUEUES = ("hardware queues in use", SHARE, 0, 1, "queues")
    RESIDENT_BLOCKS = ("blocks on SMs, of those that these have slots for", SHARE, 0, 1, "resident_blocks")
    RESIDENT_WARPS = ("warps on SMs, of those that these have slots for", SHARE, 0, 1, "resident_warps")
    PARENT_BLOCKS = ("blocks of the host's kernel that are not on an SM yet", LOG, 0, 1, "parent_blocks")
    ROOM = ("launches until the pool is full; 1: there is none", LOG, 0, 1, "room")
    OVERHEAD = ("what the launch call takes if all lanes that call launch, cycles", LOG, 0, 1, "calls")
    PER_CHILD = ("of that, for each child, cycles", LOG, 0, 1, "machine.launches.per_child_cycles")
    PER_CALL = ("of that, whatever is launched, cycles", LOG, 0, 1, "machine.launches.per_call_cycles")
    DISPATCH = (
        "from when a child has a hardware queue to its first block, cycles",
        LOG,
        0,
        1,
        "machine.launches.dispatch_cycles",
    )
    HARDWARE_QUEUES = ("kernels that can have blocks running", LOG, 0, 1, "machine.launches.hardware_queues")
    ADVANTAGE = (
        "SPAWN's estimates: log of the thread's time over the child's, over 8; 0 as long as there are no times",
        "-",
        -1,
        1,
        "work, warp_4096_ps, calls, blocks, inside, recent_block_ps, busy_running",
    )
