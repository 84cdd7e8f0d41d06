"""Layout of the SMs, their resident blocks and the grids they belong to: plain arrays of structs' fields.

SMs are kept by *rank* (placement order, see :func:`~gpusched_env.hardware.placement.sm_order`) and are
always the last axis, so that a loop over SMs reads memory in order: simulating an event touches every SM
once or twice, and nothing else costs as much. The names below are indices of the first axis (of ``grids``
and ``work``: of the last one), by array:

===========  =========  =========================  ====================================================
array        type       shape                      holds
===========  =========  =========================  ====================================================
``limits``   int64      ``(5,)``                   what an SM offers: ``THREADS`` .. ``REGISTERS``
``physics``  float64    ``(6,)``                   ``SUB_PARTITIONS`` .. ``LIGHT_WAIT``
``sms``      int64      ``(9, SMs)``               ``THREADS`` .. ``ROOM``
``memory``   float64    ``(6, SMs)``               ``DEMAND`` .. ``KIND_SMS``
``rows``     float64    ``(4, rows, SMs)``         ``LEFT`` .. ``SINCE_US``
``held``     int64      ``(3, rows, SMs)``         ``GRID``, ``COUNT``, ``STOPPED``
``grids``    int64      ``(slots, 15)``            ``THREADS`` .. ``CARVEOUT`` of a block, ``WAITING`` ..
``work``     float64    ``(slots, 7)``             ``LATENCY_US`` .. ``SAVED_LEFT``
``lists``    int64      ``(4, slots)``             ``QUEUE`` .. ``FINISHED``: grid slots
``counts``   int64      ``(9,)``                   ``QUEUE`` .. ``FINISHED``: their lengths; ``ENDED`` ..
``clock``    float64    ``(3,)``                   ``NOW``, ``NEXT``, ``TRAFFIC``
``ended``    float64    ``(rows * SMs, 4)``        residencies that ended in the last step: SM rank, slot,
                                                   blocks, start (us)
===========  =========  =========================  ====================================================

A *row* is equal blocks of one grid on one SM that started together.
"""

from __future__ import annotations

from typing import Final

THREADS: Final = 0
WARPS: Final = 1
BLOCKS: Final = 2
"""Resident blocks (``sms``), or how many an SM may hold (``limits``)."""
REGISTERS: Final = 3
SHARED: Final = 4
"""Shared memory in use, bytes; its limit is the carve-out."""
CARVEOUT: Final = 5
"""Shared-memory carve-out, bytes: of an SM that is not idle, or the one that a grid asks for."""
ROWS: Final = 6
"""Rows of residents on an SM; they come first, unused rows have ``LEFT`` 1 and ``RATE`` 0."""
DIRTY: Final = 7
"""1 if an SM's residents changed, so that their rates must be computed anew."""
ROOM: Final = 8
"""Scratch of the dispatcher: blocks of the grid at hand that an SM can still take."""
SM_FIELDS: Final = 9

DEMAND: Final = 0
"""DRAM traffic that an SM's residents ask for, bytes/us."""
LOADING: Final = 1
"""Warps of residents that use DRAM: the SM's weight in sharing the bandwidth."""
THROTTLE: Final = 2
"""Factor on the progress of memory-using blocks of an SM."""
KIND_DEMAND: Final = 3
"""Scratch: SMs of equal demand and weight are one kind in the bandwidth sharing; its demand ..."""
KIND_LOADING: Final = 4
"""... its weight ..."""
KIND_SMS: Final = 5
"""... and its number of SMs."""
MEMORY_FIELDS: Final = 6

LEFT: Final = 0
"""Share of a block's work still to do; whole numbers on top are further waves that will follow on the
same slots (see :func:`~gpusched_env.devices.reference.blocks.jump`)."""
RATE: Final = 1
"""Present progress, blocks per microsecond."""
TIME_US: Final = 2
"""Duration of a block before memory throttling."""
SINCE_US: Final = 3
"""When the blocks started."""
ROW_FIELDS: Final = 4

GRID: Final = 0
"""Grid slot of a row."""
COUNT: Final = 1
"""Blocks of a row."""
STOPPED: Final = 2
"""1 if the blocks of a row make no progress, for a preemption."""
HELD_FIELDS: Final = 3

WAITING: Final = 6
"""Blocks of a grid that are not dispatched."""
RESIDENT: Final = 7
"""Blocks of a grid on SMs."""
SAVED: Final = 8
"""How many of the waiting blocks continue with ``SAVED_LEFT`` of their work."""
PRIORITY: Final = 9
FIRST: Final = 10
"""First SM rank of a grid's partition ..."""
PARTITION: Final = 11
"""... and its number of SMs."""
QUEUED: Final = 12
"""Whether a grid is in the queue: one of the three states below."""
BEGUN: Final = 13
"""1 once a block of a grid was dispatched."""
SERIAL: Final = 14
"""Number of a grid in order of arrival: its place in the queue, and the seed of the spread of its blocks."""
GRID_FIELDS: Final = 15

NOT_QUEUED: Final = 0
"""All blocks are handed out, or no further ones are to be."""
IN_QUEUE: Final = 1
RETURNS: Final = 2
"""Not in the queue, but it will be again: saved blocks are being read back."""

LATENCY_US: Final = 0
"""Duration of a block alone with unlimited bandwidth."""
RHO: Final = 1
"""Share of that time for which a warp needs its sub-partition's issue slot."""
LOG_IDLE: Final = 2
"""Logarithm of ``1 - RHO``."""
WAIT: Final = 3
"""Share of the latency that heavier co-residents can stretch."""
DRAM_BYTES: Final = 4
"""Traffic of a block."""
SPREAD: Final = 5
"""Relative standard deviation of work between blocks."""
SAVED_LEFT: Final = 6
WORK_FIELDS: Final = 7

QUEUE: Final = 0
"""Grids with waiting blocks, in the order in which they hand them out."""
STARTED: Final = 1
DISPATCHED: Final = 2
FINISHED: Final = 3
"""Grids whose first block started, whose last block was handed out, whose blocks have all ended (or been
drained), during the last step."""
LISTS: Final = 4
ENDED: Final = 4
"""Entries of ``ended``."""
BUSY_SMS: Final = 5
"""SMs with a resident block."""
RESIDENT_THREADS: Final = 6
DEPTH: Final = 7
"""The most rows on any SM."""
AHEAD: Final = 8
"""1 if rows may hold waves that have not begun."""
COUNTS: Final = 9

NOW: Final = 0
"""Time up to which everything is simulated, us."""
NEXT: Final = 1
"""Time of the next block end under the present residency, us; ``inf``: none."""
TRAFFIC: Final = 2
"""DRAM traffic served, bytes/us."""
CLOCK_FIELDS: Final = 3

SUB_PARTITIONS: Final = 0
"""Warp schedulers of an SM."""
DRAM_RATE: Final = 1
"""Reachable DRAM bandwidth, bytes/us."""
DRAM_NORM: Final = 2
ISSUE: Final = 3
"""1 if blocks share issue slots."""
OLDEST_FIRST: Final = 4
"""1 if older blocks issue first."""
LIGHT_WAIT: Final = 5
"""1 if light warps wait longer among heavier ones."""
