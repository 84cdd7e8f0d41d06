"""No schedule of launches that pass a window violates a dependency, and both devices carry it out alike."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.devices import make_device
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Preempt, Reject, Wait
from gpusched_env.scheduling.timeline import Columns, Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload.memory import conflict
from gpusched_env.workload.workload import COPIES, Op, OpKind, Segment
from tests.devices.windows import (
    GAP_US,
    WINDOW,
    build,
    kernel,
    workload,
)


@st.composite
def programs(draw: st.DrawFn, copies: bool) -> list[Op]:
    """Launches on a few bytes of few storages; now and then on memory that is not known."""
    bounds = st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted)
    memory = st.lists(st.builds(lambda s, ends: Segment(s, *ends), st.integers(0, 3), bounds), max_size=2).map(tuple)

    def op(place: int) -> Op:
        known = draw(st.integers(0, 9)) > 0
        kind = draw(st.sampled_from(COPIES)) if copies and draw(st.booleans()) else OpKind.KERNEL
        return Op(
            kind, draw(st.sampled_from([0.0, 0.5, 2.0])), duration_us=draw(st.sampled_from([1.0, 3.0, 8.5])),
            bytes=draw(st.integers(1, 4)) if kind is OpKind.KERNEL else place,
            reads=draw(memory) if known else None, writes=draw(memory),
        )  # fmt: skip

    return [kernel(1.0), *(op(place) for place in range(1, draw(st.integers(1, 12))))]


def open_to(view: View, launch: int, depth: int) -> list[int]:
    """The scheduler's streams that may take a launchable launch."""
    pending, running = view.pending, view.running
    if pending.preempted[pending.id == launch][0]:
        return []
    waits_for = view.dependencies.waits_for[view.dependencies.launch == launch]
    behind = {int(stream) for stream in running.stream[np.isin(running.id, waits_for)]}
    held = [*running.stream, *pending.stream[pending.preempted == 1.0]]
    return [stream for stream in (2, 3, 4) if held.count(stream) < depth and behind <= {stream}]


def at_random(seed: int, depth: int) -> Callable[[View], Command]:
    """Launches in any order into any stream that may take them, preemptions, rejections and waits."""
    dice = random.Random(seed)

    def decide(view: View) -> Command:
        launchable = view.pending.id[view.pending.launchable == 1.0].astype(int).tolist()
        victims = view.running.id[view.running.preemptible == 1.0].astype(int).tolist()
        rejectable = np.flatnonzero(view.jobs.rejectable)
        if rejectable.size and dice.random() < 0.02:
            row = dice.choice(rejectable.tolist())
            return Reject(int(view.jobs.tenant[row]), int(view.jobs.job[row]))
        if victims and dice.random() < 0.1:
            return Preempt(dice.choice(victims), dice.choice(("drain", "save")))
        if launchable and dice.random() < 0.8:
            launch = dice.choice(launchable)
            stream = dice.choice((None, *open_to(view, launch, depth)))
            return Launch(launch, priority=dice.choice((None, 0, -1)), stream=stream)
        return Wait(view.time_us + dice.choice((0.5, 3.0))) if launchable else WAIT

    return decide


@settings(max_examples=40)
@given(
    data=st.data(),
    copies=st.booleans(),
    size=st.sampled_from([1, 3, 8]),
    depth=st.sampled_from([1, 2, 4]),
    seed=st.integers(0, 2**32),
)
def test_no_schedule_violates_a_dependency(data: st.DataObject, copies: bool, size: int, depth: int, seed: int) -> None:
    """Each launch starts a launch after all that it conflicts with, older in the program, is known to have ended, or,
    in the same stream, after its end; and after all of the job before. Copies have no job in a timeline: where there
    are some, there is one job."""
    programs_ = [data.draw(programs(copies)) for _ in range(2)]
    works = [workload(name, ops) for name, ops in zip("ab", programs_, strict=True)]
    jobs = 1 if copies else 2
    window = {"size": size, "streams": 3, "depth": depth}
    built = build(*works, jobs=jobs, window=window, commands=["launch", "preempt", "reject"])
    timelines = []
    for name in ("reference", "compiled"):
        device, decide = make_device(name), at_random(seed, depth)
        view = device.reset(built, 0, record="kernels")
        while view is not None:
            device.apply(decide(view))
            view = device.advance()
        assert device.done
        timelines.append(device.timeline)
    for table in ("kernels", "copies"):
        expected, found = (getattr(timeline, table).exact for timeline in timelines)
        np.testing.assert_array_equal(found, expected)
    known_ps = to_ps(WINDOW["sync_us"] + WINDOW["launch_us"])
    first_identity = 0
    for tenant, ops in enumerate(programs_):
        spans = ran(timelines[0], tenant, first_identity, ops)
        first_identity += sum(op.kind is OpKind.KERNEL for op in ops)
        for job, newer, stream, start_ps, _ in spans:
            for other, older, before, _, end_ps in spans:
                if other < job or (other == job and older < newer and conflict(ops[older], ops[newer])):
                    behind = depth > 1 and other == job and stream == before >= 0
                    assert start_ps >= end_ps + (to_ps(GAP_US) if behind else known_ps)


def ran(timeline: Timeline, tenant: int, first_identity: int, ops: list[Op]) -> list[tuple[int, ...]]:
    """(job, place in the program, the scheduler's stream, start, end) of what a tenant ran; a copy says its place in
    its bytes, and is in none."""

    def rows(table: Columns, *names: str) -> list[tuple[int, ...]]:
        return [
            row[1:] for row in zip(*(table.ps(n).tolist() for n in ("tenant", *names)), strict=True) if row[0] == tenant
        ]

    places = [place for place, op in enumerate(ops) if op.kind is OpKind.KERNEL]
    kernels = rows(timeline.kernels, "job", "identity", "stream", "started_us", "ended_us")
    copies = rows(timeline.copies, "bytes", "started_us", "ended_us")
    return [(job, places[identity - first_identity], *span) for job, identity, *span in kernels] + [
        (0, place, -1, *span) for place, *span in copies
    ]
