"""Queues that are solved by hand: logs of both devices, to the nanosecond."""

from __future__ import annotations

import numpy as np

from gpusched_env.errors import DeadlockError
from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.hardware.machine import crowded
from gpusched_env.games.task_queues.problem import Form
from tests.games.task_queues.devices.toys import PS, events, graph, run, toy
from tests.refusals import refused

LATE = graph(44, (0, 1), (0, 2), *((1, leaf) for leaf in range(3, 43)), (2, 43))
"""A vertex with two neighbours: one with 40 leaves, one with a single leaf."""


def test_two_workers_and_a_late_publisher(device: TaskDevice) -> None:
    """Worker 1 reserves places 3 to 42 first, and writes 64 tasks' worth; worker 0 reserves 43 and is done sooner.

    Until worker 1 publishes at 672 nothing behind place 3 can be read, and worker 0 has nothing to do.
    """
    run(device, toy(LATE), Form(fetch=1))
    assert events(device)[:19] == [
        # A launch takes 200. The second reservation waits for the first.
        (200, "GRAB", 0, 0, 0),
        (200, "GRAB", 1, 1, 0),
        (210, "STEP", 0, 0, 1),
        # Worker 1 owns a place that nobody has written. It polls at 241, 271 and so on.
        (211, "IDLE", 1, 1, 0),
        # 20 for loading, 10 for the slot; then 1 for the reservation, 50 for the push, 100 for 32 tasks or fewer.
        (240, "RESERVE", 0, 1, 2),
        (391, "PUBLISH", 0, 3, 2),
        # Three counters take 3, the reservation 1, its way back 9. The poll at 391 sees what was published at 391.
        (391, "GRAB", 0, 2, 0),
        (391, "STEP", 1, 1, 1),
        (404, "STEP", 0, 2, 1),
        (421, "RESERVE", 1, 3, 40),
        (434, "RESERVE", 0, 43, 1),
        (585, "PUBLISH", 0, 3, 1),
        (585, "GRAB", 0, 3, 0),
        (598, "IDLE", 0, 3, 0),
        (672, "PUBLISH", 1, 44, 40),
        (672, "GRAB", 1, 4, 0),
        (685, "STEP", 1, 4, 1),
        (688, "STEP", 0, 3, 1),
        (715, "GRAB", 1, 5, 0),
    ]
    assert device.data.level.tolist() == [0, 1, 1, *[2] * 41]
    assert device.totals["tasks"] == 44


def test_the_vote(device: TaskDevice) -> None:
    """Everybody votes at the third fruitless poll, and leaves at the first poll after the last vote."""
    run(device, toy(graph(1), polls=3), Form(fetch=1))
    assert events(device) == [
        (200, "GRAB", 0, 0, 0),
        (200, "GRAB", 1, 1, 0),
        (210, "STEP", 0, 0, 1),
        (211, "IDLE", 1, 1, 0),
        (240, "GRAB", 0, 2, 0),
        (250, "IDLE", 0, 2, 0),
        (271, "VOTE", 1, 1, 0),
        (310, "VOTE", 0, 2, 0),
        # Worker 1 polls at 301, one vote short.
        (331, "LEAVE", 1, 0, 0),
        (340, "LEAVE", 0, 0, 0),
        (340, "OVER", -1, 0, 0),
    ]
    assert device.time_ps == 390 * PS


def test_a_level_in_a_discrete_form(device: TaskDevice) -> None:
    """The host copies the end at 10, knows it at 60, has launched at 160; the kernel arrives at 260.

    It may give up after one copy without anything new, so that each such copy comes behind a repair, 200 later. That
    of 170 does not count, as the kernel has no place yet; that of 430 does, and is too early, which is an error.
    """
    device.begin(toy(graph(2, (0, 1))), Form("discrete", fetch=1, polls=1))
    with refused(DeadlockError, "0.441 us", "1 tasks", "after 1"):
        device.advance()
    assert events(device) == [
        (10, "COPY", -1, 1, 0),
        (170, "COPY", -1, 1, 0),
        (260, "LAUNCH", -1, 0, 1),
        (260, "STEP", 0, 0, 1),
        (290, "RESERVE", 0, 1, 1),
        # The host gives up, but waits for what runs.
        (430, "COPY", -1, 1, 0),
        (441, "PUBLISH", 0, 2, 1),
        (441, "OVER", -1, 0, 0),
    ]
    run(device, toy(graph(2, (0, 1))), Form("discrete", fetch=1))
    assert device.data.level.tolist() == [0, 1]


def test_a_crowded_block() -> None:
    """A round of 8 slots of 16 warps takes three times as long in the mean if one of 16 would take five times."""
    drawn = np.array([crowded(1000, 5.0, 256, 16, worker, 1000 * now) for worker in range(50) for now in range(200)])
    assert (drawn.min() >= 1000, drawn.max() <= 5000) == (True, True)
    assert abs(drawn.mean() - 3000) < 40
    assert abs(drawn.std() - 4000 / 12**0.5) < 40
    assert crowded(1000, 1.0, 256, 16, 7, 12345) == 1000


def test_a_level_in_a_bulk_synchronous_form(device: TaskDevice) -> None:
    """Copies at 10, at 441 + 50 + 10 after the first kernel, and at 781 + 60 after the second, which pushes nothing."""
    run(device, toy(graph(2, (0, 1))), Form("bulk-synchronous", fetch=1))
    assert events(device) == [
        (10, "COPY", -1, 1, 0),
        (260, "LAUNCH", -1, 0, 1),
        (260, "STEP", 0, 0, 1),
        (290, "RESERVE", 0, 1, 1),
        (441, "PUBLISH", 0, 2, 1),
        (501, "COPY", -1, 2, 0),
        (751, "LAUNCH", -1, 1, 1),
        (751, "STEP", 0, 1, 1),
        (841, "COPY", -1, 2, 0),
        (841, "OVER", -1, 0, 0),
    ]
    assert device.time_ps == 891 * PS


def test_a_warp_goes_vertex_by_vertex(device: TaskDevice) -> None:
    """15 for each vertex, 10 for each slot: 40 leaves and their neighbour in two slots, the single leaf in one."""
    run(device, toy(LATE), Form(worker="warp", fetch=64))
    steps = [row for row in events(device) if row[1] in ("STEP", "RESERVE", "PUBLISH")]
    assert steps[:8] == [
        (210, "STEP", 0, 0, 1),
        (235, "RESERVE", 0, 1, 2),
        (376, "PUBLISH", 0, 3, 2),
        # Both at once: vertex 1 has neighbours 0 and 3 to 33 in its first slot, and 34 to 42 in its second.
        (384, "STEP", 0, 1, 2),
        (409, "RESERVE", 0, 3, 31),
        (550, "PUBLISH", 0, 34, 31),
        (563, "RESERVE", 0, 34, 9),
        (704, "PUBLISH", 0, 43, 9),
    ]


def test_speculation(device: TaskDevice) -> None:
    """Neighbours that a block colours in one round all take the same colour; the higher ones are coloured again."""
    chain = graph(4, (0, 1), (1, 2), (2, 3))
    run(device, toy(chain, application="colouring"), Form("bulk-synchronous", fetch=4))
    # 4 colourings; 3 again, of which 2 again, of which 1 again: 10, and as many checks.
    assert device.data.level.tolist() == [0, 1, 0, 1]
    assert device.totals["tasks"] == 20
    one_by_one = run(device, toy(chain, application="colouring"), Form("bulk-synchronous", worker="warp", fetch=4))
    assert one_by_one.data.level.tolist() == [0, 1, 0, 1]
    assert one_by_one.totals["tasks"] == 8
