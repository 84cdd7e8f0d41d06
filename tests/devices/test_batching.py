"""Serving engines: requests that run together, in a cache that grows. Hand-solved, on both simulated devices.

Steps of ``toy_engine`` have a kernel each, prefills of 4 and 8 tokens take 40 and 80 us, decode steps of 1, 2 and 4
requests with 8 tokens each 10, 14 and 20 us, with 16 each 12, 16 and 24 us.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.data import read_recorded
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.commands import WAIT, Launch, Reject, Throttle, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import View
from gpusched_env.workload.host import HAS_LEFT
from gpusched_env.workload.workload import Op, OpKind, Workload
from tests.devices.problems import new_device, run
from tests.refusals import refused

each_device = pytest.mark.usefixtures("each_device")


def values(*lengths: int) -> dict[str, Any]:
    return {"kind": "values", "values": list(lengths)}


def engine(
    prompt: int | dict[str, Any],
    answer: int | dict[str, Any],
    *,
    max_batch: int = 2,
    cache_tokens: int = 100,
    workload: Workload | None = None,
    commands: tuple[str, ...] = ("launch",),
    **fields: Any,
) -> Problem:
    """One tenant alone, which is an engine; ``fields`` are the tenant's."""
    lengths = [each if isinstance(each, dict) else values(each) for each in (prompt, answer)]
    batching = {"max_batch": max_batch, "cache_tokens": cache_tokens, "prompt": lengths[0], "answer": lengths[1]}
    tenant = {"name": "chat", "workload": "toy_engine", "arrivals": {"kind": "backlog"}, "jobs": 2, **fields}
    data = {
        "name": "test", "gpu": "toy-4sm", "horizon_us": 1e5, "stream_priorities": [0], "commands": commands,
        "throttle_us": 0.0, "tenants": [{**tenant, "batching": batching}],
    }  # fmt: skip
    return build_problem(make_scenario(data), workloads={"toy_engine": workload or read_recorded("toy_engine")})


def with_ops(*ops: Op) -> Workload:
    """``toy_engine`` with other operations around the one kernel of each step: those that are no kernel."""
    workload = read_recorded("toy_engine")
    variants = tuple(
        msgspec.structs.replace(v, ops=tuple(v.ops[0] if op.kind is OpKind.KERNEL else op for op in ops))
        for v in workload.variants
    )
    return msgspec.structs.replace(workload, variants=variants)


KERNEL = Op(OpKind.KERNEL)


def every(period_us: float) -> dict[str, Any]:
    return {"kind": "periodic", "period_us": period_us}


def steps(problem: Problem, device: Device) -> list[tuple[str, int, float, float]]:
    """Kernel, the request that it belongs to, when it was issued and ended."""
    rows = device.timeline.kernels.array
    return [(problem.kernels[int(r[3])].kernel.name, int(r[2]), r[4], r[7]) for r in rows]


def played(problem: Problem) -> Device:
    """What launching everything at once comes to."""
    device = new_device()
    view: View | None = device.reset(problem, 0, record="kernels")
    while view is not None:
        pending = view.pending
        device.apply(Launch(int(pending.id[0])) if len(pending) and pending.launchable[0] else WAIT)
        view = device.advance()
    return device


@each_device
def test_a_full_cache_takes_the_newest_request_out_which_is_computed_anew() -> None:
    problem = engine(4, 5, cache_tokens=11, arrivals=every(30.0), jobs=3, slo_us=100.0)
    device = played(problem)
    assert steps(problem, device) == [
        # Request 1 came at 30 us: 8 tokens are in the cache then.
        ("prefill_4", 0, 0.0, 40.0),
        ("prefill_4", 1, 40.0, 80.0),
        # Both get their second token, which takes the cache to 10. Request 2 came at 60 us: two run already.
        ("decode_2x8", 0, 80.0, 94.0),
        # Two more would be 12 of 11: request 1 goes. It needs 6 with its two tokens, and 0 holds 6 and more.
        ("decode_1x8", 0, 94.0, 104.0),
        ("decode_1x8", 0, 104.0, 114.0),
        ("decode_1x8", 0, 114.0, 124.0),
        # Request 0 has its five tokens. Request 1 goes first, as it is older, and gets its third; then 2 its first.
        ("prefill_8", 1, 124.0, 204.0),
        ("prefill_4", 2, 204.0, 244.0),
        # 6 and 4 tokens in the cache: now request 2 goes.
        ("decode_1x8", 1, 244.0, 254.0),
        ("decode_1x8", 1, 254.0, 264.0),
        ("prefill_8", 2, 264.0, 344.0),
        ("decode_1x8", 2, 344.0, 354.0),
        ("decode_1x8", 2, 354.0, 364.0),
        ("decode_1x8", 2, 364.0, 374.0),
    ]
    jobs, requests = device.timeline.jobs.array.tolist(), device.timeline.requests.array.tolist()
    assert [job[1:] for job in jobs] == [[0, 0.0, 0.0, 124.0], [1, 30.0, 40.0, 264.0], [2, 60.0, 204.0, 374.0]]
    # First token, tokens, how often it lost its cache.
    assert [request[1:] for request in requests] == [[0, 40.0, 5, 0], [1, 80.0, 5, 1], [2, 244.0, 5, 1]]
    # Request 2 came at 60 us and waited for 184 us; that the others were done after 100 us is no miss.
    assert device.costs.slo_misses.tolist() == [1]


@each_device
def test_what_is_computed_anew_is_longer_than_any_recorded_prefill() -> None:
    problem = engine(8, 9, cache_tokens=20)
    device = played(problem)
    assert steps(problem, device) == [
        ("prefill_8", 0, 0.0, 80.0),
        ("prefill_8", 1, 80.0, 160.0),
        # Contexts of 9 and 10: more than 8.
        ("decode_2x16", 0, 160.0, 176.0),
        ("decode_2x16", 0, 176.0, 192.0),
        *[("decode_1x16", 0, 192.0 + 12.0 * i, 204.0 + 12.0 * i) for i in range(6)],
        # A prompt of 8 and 3 tokens, in steps of 8 and 3.
        ("prefill_8", 1, 264.0, 344.0),
        ("prefill_4", 1, 344.0, 384.0),
        *[("decode_1x16", 1, 384.0 + 12.0 * i, 396.0 + 12.0 * i) for i in range(5)],
    ]
    assert device.timeline.requests.array.tolist() == [[0, 0, 80.0, 9, 0], [0, 1, 160.0, 9, 1]]


@each_device
def test_a_step_is_the_smallest_recorded_one_that_covers_who_runs_and_their_mean_context() -> None:
    problem = engine(4, 3, max_batch=3, jobs=3)
    device = played(problem)
    # Three run, as four; contexts are 5 and 6.
    decodes = [("decode_4x8", 0, 120.0, 140.0), ("decode_4x8", 0, 140.0, 160.0)]
    assert steps(problem, device)[3:] == decodes
    assert device.timeline.jobs.column("completed_us").tolist() == [160.0] * 3


@each_device
def test_an_answer_of_one_token_ends_with_its_prefill() -> None:
    problem = engine(3, 1)
    assert steps(problem, played(problem)) == [("prefill_4", 0, 0.0, 40.0), ("prefill_4", 1, 40.0, 80.0)]


@each_device
@pytest.mark.parametrize(("slo_us", "missed"), [(80.0, 0), (79.0, 1), (39.0, 2)])
def test_the_objective_is_on_the_first_token(slo_us: float, missed: int) -> None:
    problem = engine(4, 5, slo_us=slo_us)
    device = new_device()
    view: View | None = device.reset(problem, 0)
    deadlines = {}
    while view is not None:
        deadlines[view.time_us] = view.jobs.deadline_us.tolist()
        pending = view.pending
        device.apply(Launch(int(pending.id[0])) if len(pending) and pending.launchable[0] else WAIT)
        view = device.advance()
    assert device.costs.slo_misses.tolist() == [missed]
    # First tokens at 40 and 80 us: then there is no deadline any more.
    assert (deadlines[0.0], deadlines[40.0], deadlines[80.0]) == (
        [slo_us] * 2,
        [math.inf, slo_us],
        [math.inf, math.inf],
    )


@each_device
def test_views_show_an_engine_s_requests_up_to_their_first_tokens() -> None:
    problem = engine(4, 5, arrivals=every(10.0))
    # A prefill and four decode steps; the objective would be on the former.
    assert (problem.programs[0].alone_us, problem.knowledge.tenants[0].alone_us) == (80.0, 40.0)
    device = new_device()
    view: View | None = device.reset(problem, 0)
    shown = {}
    while view is not None:
        tenants = view.tenants
        shown[view.time_us] = (
            float(tenants.last_turnaround_us[0]),
            float(tenants.mean_turnaround_us[0]),
            float(tenants.oldest_arrived_us[0]),
        )
        assert view.tenants.alone_us[0] == view.tenants.device_us[0] == 40.0
        pending = view.pending
        device.apply(Launch(int(pending.id[0])) if len(pending) and pending.launchable[0] else WAIT)
        view = device.advance()
    # The second request came at 10 us.
    assert shown[40.0] == (40.0, 40.0, 10.0)
    assert shown[80.0] == (70.0, 43.75, math.inf)


@each_device
def test_a_step_is_due_when_the_next_request_is_that_waits_for_its_first_token() -> None:
    problem = engine(4, 5, max_batch=2, arrivals=every(30.0), jobs=4, slo_us=200.0)
    device = new_device()
    view: View | None = device.reset(problem, 0, record="kernels")
    due = {}
    while view is not None:
        pending, running = view.pending, view.running
        for rows in (pending, running):
            due |= dict(zip(rows.id.astype(int).tolist(), rows.deadline_us.tolist(), strict=True))
        device.apply(Launch(int(pending.id[0])) if len(pending) and pending.launchable[0] else WAIT)
        view = device.advance()
    assert [(name, number) for name, number, *_ in steps(problem, device)][:7] == [
        ("prefill_4", 0),
        ("prefill_4", 1),
        *[("decode_2x8", 0)] * 4,
        ("prefill_4", 2),
    ]
    # Two prefills by their own deadlines, then steps that request 2 waits for, which came at 60 us; its prefill, and
    # that of the last; then nobody waits.
    assert [due[launch] for launch in range(8)] == [200.0, 230.0, *[260.0] * 4, 260.0, 290.0]
    assert {due[launch] for launch in range(8, len(due))} == {math.inf}


@each_device
def test_who_runs_cannot_be_given_up_and_who_waits_can() -> None:
    problem = engine(4, 5, cache_tokens=11, jobs=3, commands=("launch", "reject"))
    device = new_device()
    view: View | None = device.reset(problem, 0, record="kernels")
    rejectable: dict[float, list[int]] = {}
    while view is not None:
        jobs, pending = view.jobs, view.pending
        rejectable.setdefault(view.time_us, jobs.job[jobs.rejectable == 1.0].astype(int).tolist())
        if len(pending) and pending.launchable[0]:
            device.apply(Launch(int(pending.id[0])))
        elif view.time_us == 94.0 and len(jobs) == 3:
            with refused(IllegalCommand, "job 0", "[1, 2]"):
                device.apply(Reject(0, 0))
            # It has lost its cache, and with it the right to stay.
            device.apply(Reject(0, 1))
        else:
            device.apply(WAIT)
        view = device.advance()
    # Request 0 runs from 0 us on, 1 from 40 us to 94 us, 2 in its place from 104 us on.
    assert {us: rejectable[us] for us in (0.0, 40.0, 80.0, 94.0, 104.0)} == {
        0.0: [1, 2],
        40.0: [2],
        80.0: [2],
        94.0: [1, 2],
        104.0: [],
    }
    assert device.timeline.rejections.array.tolist() == [[0, 1, 0.0, 94.0]]
    assert device.timeline.jobs.column("job").tolist() == [0, 2]
    assert device.costs.rejected.tolist() == [1]


@each_device
def test_an_engine_that_is_throttled_sleeps_before_each_step() -> None:
    problem = engine(4, 3, jobs=1, commands=("launch", "throttle"))
    device = new_device()
    view: View | None = device.reset(problem, 0, record="kernels")
    orders = [Throttle(0, 5.0)]
    while view is not None:
        pending = view.pending
        if view.time_us in (50.0, 52.0):
            # Between two steps the next one is all to do.
            assert view.jobs.unfinished.tolist() == [1.0]
        if view.time_us == 40.0 and orders:
            device.apply(orders.pop())
        else:
            later = Wait(52.0) if view.time_us == 50.0 else WAIT
            device.apply(Launch(int(pending.id[0])) if len(pending) and pending.launchable[0] else later)
        view = device.advance()
    # The step after the first prefill had begun when it was told.
    ends = [(issued, ended) for _, _, issued, ended in steps(problem, device)]
    assert ends == [(0.0, 40.0), (40.0, 50.0), (55.0, 65.0)]


@each_device
def test_a_scheduler_is_asked_when_a_request_loses_its_cache() -> None:
    workload = with_ops(Op(OpKind.HOST, 3.0), KERNEL)
    problem = engine(4, 5, cache_tokens=11, workload=workload, commands=("launch", "reject", "throttle"))
    device = new_device()
    view: View | None = device.reset(problem, 0, record="kernels")
    orders = [Throttle(0, 5.0)]
    rejectable: dict[float, list[int]] = {}
    while view is not None:
        jobs, pending = view.jobs, view.pending
        rejectable[view.time_us] = jobs.job[jobs.rejectable == 1.0].astype(int).tolist()
        ready = len(pending) and pending.launchable[0]
        device.apply(orders.pop() if orders else Launch(int(pending.id[0])) if ready else WAIT)
        view = device.advance()
    # Two prefills and a decode step, of 3 us of the host and a kernel each. Then the engine sleeps for 5 us, as between
    # these, and has no place for two more tokens. Nothing else happens at that time.
    assert rejectable[113.0] == []
    assert rejectable[118.0] == [1]


@each_device
@pytest.mark.parametrize(
    ("ops", "lasts_us"),
    [
        # The host does not wait: the step ends with its kernel all the same.
        ((KERNEL,), (40.0, 14.0)),
        ((KERNEL, Op(OpKind.SYNC)), (40.0, 14.0)),
        # The host samples the token, and is ready before the kernel or behind it.
        ((KERNEL, Op(OpKind.HOST, 30.0)), (40.0, 30.0)),
        ((KERNEL, Op(OpKind.SYNC), Op(OpKind.HOST, 30.0)), (70.0, 44.0)),
    ],
)
def test_a_step_ends_when_host_and_gpu_have_done_with_it(ops: tuple[Op, ...], lasts_us: tuple[float, float]) -> None:
    device = played(engine(4, 2, workload=with_ops(*ops)))
    prefill_us, decode_us = lasts_us
    tokens = device.timeline.requests.column("first_token_us").tolist()
    assert tokens == [prefill_us, 2.0 * prefill_us]
    assert device.timeline.jobs.column("completed_us").tolist() == [2.0 * prefill_us + decode_us] * 2


@each_device
def test_requests_that_come_while_a_host_waits_for_its_step_are_taken_up_behind_it() -> None:
    device = played(engine(4, 2, workload=with_ops(KERNEL), arrivals=every(15.0), jobs=3))
    # The second came at 15 us, the third at 30 us, when two ran.
    assert device.timeline.requests.column("first_token_us").tolist() == [40.0, 80.0, 134.0]


@each_device
def test_a_closed_loop_sends_the_next_request_when_the_last_token_is_there() -> None:
    problem = engine(4, 2, arrivals={"kind": "closed-loop", "think_us": 7.0})
    assert played(problem).timeline.jobs.array[:, 2:].tolist() == [[0.0, 0.0, 50.0], [57.0, 57.0, 107.0]]


@each_device
def test_a_closed_loop_sends_the_next_request_at_once_where_one_cannot_be_held() -> None:
    problem = engine(4, values(2, 9), cache_tokens=8, arrivals={"kind": "closed-loop"}, jobs=20)
    device = played(problem)
    completed = int(device.costs.completed[0])
    assert 0 < completed < 20
    assert device.costs.rejected.tolist() == [20 - completed]
    assert device.timeline.jobs.column("arrived_us").tolist() == [50.0 * k for k in range(completed)]
    # Each came when the one before was done, and the last may be one of them.
    assert set(device.timeline.rejections.column("rejected_us")) <= {50.0 * k for k in range(completed + 1)}


@each_device
def test_more_requests_than_there_was_room_for_complete_at_once() -> None:
    # More rows at one instant than a log has room for besides.
    workload = read_recorded("toy_engine")
    wide = msgspec.json.decode(msgspec.json.encode(workload.variants[-1]), type=type(workload.variants[0]))
    assert wide.step is not None
    wide = msgspec.structs.replace(wide, step=msgspec.structs.replace(wide.step, batch=300))
    workload = msgspec.structs.replace(workload, variants=(*workload.variants, wide))
    device = played(engine(1, 2, max_batch=300, cache_tokens=600, workload=workload, jobs=300))
    assert device.timeline.jobs.column("completed_us").tolist() == [300 * 40.0 + 24.0] * 300
    assert device.timeline.requests.column("first_token_us").tolist() == [40.0 * (i + 1) for i in range(300)]


@each_device
def test_lengths_are_drawn_at_arrival_and_do_not_depend_on_who_schedules() -> None:
    problem = engine(
        {"kind": "lognormal", "median": 4, "sigma": 0.5, "most": 8},
        {"kind": "geometric", "mean": 4, "most": 9},
        jobs=100,
    )

    def later(view: View) -> Any:
        ready = view.pending.launchable == 1.0
        return (
            Launch(int(view.pending.id[ready][0]))
            if ready.any() and view.pending.waited_us[0] >= 3.0
            else (Wait(view.time_us + 3.0) if ready.any() else WAIT)
        )

    at_once, delayed = run(problem).timeline.requests, run(problem, later).timeline.requests
    tokens = [dict(zip(t.column("job"), t.column("tokens"), strict=True)) for t in (at_once, delayed)]
    assert tokens[0] == tokens[1]
    assert len(set(tokens[0].values())) > 3
    other = run(problem, seed=1).timeline.requests
    assert dict(zip(other.column("job"), other.column("tokens"), strict=True)) != tokens[0]


@each_device
def test_answers_are_drawn_for_themselves() -> None:
    problem = engine(values(1, 8), values(1, 2), jobs=40)
    device = played(problem)
    prefills = {job: name for name, job, *_ in steps(problem, device) if name.startswith("prefill")}
    tokens = dict(zip(*(device.timeline.requests.column(name).tolist() for name in ("job", "tokens")), strict=True))
    pairs = {(prefills[job], tokens[job]) for job in tokens}
    assert pairs == {("prefill_4", 1.0), ("prefill_4", 2.0), ("prefill_8", 1.0), ("prefill_8", 2.0)}


# ---- an engine of one's own to compare with ------------------------------------------------------------


STEPS = {"prefill": {4: 40.0, 8: 80.0}, 1: {8: 10.0, 16: 12.0}, 2: {8: 14.0, 16: 16.0}, 4: {8: 20.0, 16: 24.0}}


def told(
    requests: list[tuple[float, int, int]], max_batch: int, cache_tokens: int
) -> dict[int, tuple[float, float, int]]:
    """First token, completion and preemptions of requests (arrival, prompt, answer), by lists of who waits and runs."""
    waiting, running = [], []
    made, first, lost = dict.fromkeys(range(len(requests)), 0), {}, dict.fromkeys(range(len(requests)), 0)
    found: dict[int, tuple[float, float, int]] = {}
    now, coming = 0.0, list(range(len(requests)))
    held: dict[int, int] = {}

    def token(number: int) -> None:
        made[number] += 1
        first.setdefault(number, now)
        if made[number] == requests[number][2]:
            running.remove(number)
            held.pop(number)
            found[number] = first[number], now, lost[number]

    while len(found) < len(requests):
        while coming and requests[coming[0]][0] <= now:
            waiting.append(coming.pop(0))
        if not waiting and not running:
            now = requests[coming[0]][0]
            continue
        length = requests[waiting[0]][1] + made[waiting[0]] if waiting else 0
        if waiting and len(running) < max_batch and sum(held.values()) + length <= cache_tokens:
            number = waiting.pop(0)
            running.append(number)
            held[number] = length
            while length > 0:
                now += next(us for tokens, us in STEPS["prefill"].items() if tokens >= min(length, 8))
                length -= 8
            token(number)
            continue
        while sum(held.values()) + len(running) > cache_tokens:
            out = running.pop()
            held.pop(out)
            lost[out] += 1
            waiting.insert(0, out)
        for number in running:
            held[number] += 1
        mean = sum(held.values()) / len(running)
        contexts = next(STEPS[size] for size in (1, 2, 4) if size >= len(running))
        now += next(us for context, us in contexts.items() if context >= mean)
        for number in tuple(running):
            token(number)
    return found


@given(data=st.data())
def test_an_engine_does_what_a_simpler_one_does_and_never_holds_too_much(data: st.DataObject) -> None:
    prompts = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    answers = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    least = min(prompts) + min(answers) - 1
    max_batch, cache_tokens = data.draw(st.integers(1, 4)), least + data.draw(st.integers(0, 30))
    arrivals = every(data.draw(st.sampled_from((7.0, 30.0, 61.0, 200.0))))
    problem = engine(
        values(*prompts), values(*answers), max_batch=max_batch, cache_tokens=cache_tokens, arrivals=arrivals, jobs=6
    )
    device = ReferenceDevice()
    view: View | None = device.reset(problem, data.draw(st.integers(0, 1000)), record="kernels")
    lengths: dict[int, tuple[float, int, int]] = {}
    while view is not None:
        client, known = device.world.clients[0], device.world.jobs[0]
        jobs = [known[n] for n in range(client.first, client.arrived) if known[n].state != HAS_LEFT]
        lengths |= {job.number: (job.arrived_ps / 1e6, job.prompt, job.answer) for job in jobs}
        # In service: it is in the cache, which has room for it; who is not, is younger.
        running = [job.state == 1 for job in jobs]
        held = [job.cached for job, runs in zip(jobs, running, strict=True) if runs]
        assert sum(held) == client.cached <= cache_tokens
        assert sum(running) == client.running <= max_batch
        assert running == sorted(running, reverse=True)
        pending = view.pending
        device.apply(Launch(int(pending.id[0])) if len(pending) and pending.launchable[0] else WAIT)
        view = device.advance()
    numbers = sorted(lengths)
    expected = told([lengths[number] for number in numbers], max_batch, cache_tokens)
    ended = dict(zip(device.timeline.jobs.column("job"), device.timeline.jobs.column("completed_us"), strict=True))
    requests = {int(r[1]): (r[2], ended[r[1]], int(r[4])) for r in device.timeline.requests.array.tolist()}
    assert requests == {numbers[row]: what for row, what in expected.items()}
    # What the cache can never hold has gone when it came.
    rejected = device.timeline.rejections
    assert rejected.column("arrived_us").tolist() == rejected.column("rejected_us").tolist()
    assert sorted([*rejected.column("job").astype(int).tolist(), *lengths]) == list(range(6))
    assert len(rejected) == 0 or max(prompts) + max(answers) - 1 > cache_tokens
    # No token is lost, and none comes twice.
    tokens = dict(zip(*(device.timeline.requests.column(name) for name in ("job", "tokens")), strict=True))
    assert tokens == {number: answer for number, (_, _, answer) in lengths.items()}
