"""Jobs that come as recorded, on both simulated devices. Steps of ``toy_engine`` as in :mod:`.test_batching`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from tests.devices import problems

each_device = pytest.mark.usefixtures("each_device")
TIMES = [5.0, 30.0, 200.0]
LENGTHS = {"prompts": [4, 8, 2], "answers": [1, 5, 2]}


def chat(trace: dict[str, Any], horizon_us: float = 400.0, **batching: Any) -> Problem:
    """An engine alone that is asked as a trace has it."""
    tenant = {
        "name": "chat", "workload": "toy_engine", "arrivals": {"kind": "trace", **trace},
        "batching": {"max_batch": 2, "cache_tokens": 100, "prompt": {"kind": "recorded"},
                     "answer": {"kind": "recorded"}} | batching,
    }  # fmt: skip
    data = {"name": "test", "gpu": "toy-4sm", "horizon_us": horizon_us, "stream_priorities": [0], "tenants": [tenant]}
    return build_problem(make_scenario(data))


def played(problem: Problem, seed: int = 0) -> Episode:
    return run_episode(new_scheduler("pass-through"), problem, make_device(problems.DEVICE), seed, record="kernels")


def requests(episode: Episode) -> dict[int, tuple[float, int]]:
    """When each request came and how long its answer was; by number."""
    jobs, tokens = episode.timeline.jobs.dict(), episode.timeline.requests.dict()
    answers = dict(zip(tokens["job"].tolist(), tokens["tokens"].tolist(), strict=True))
    came = sorted(zip(jobs["job"].tolist(), jobs["arrived_us"].tolist(), strict=True))
    return {int(number): (us, int(answers[number])) for number, us in came}


def prefills(problem: Problem, episode: Episode) -> dict[int, str]:
    """The first step of each request."""
    rows = episode.timeline.kernels.dict()
    found: dict[int, str] = {}
    for job, identity in zip(rows["job"].tolist(), rows["identity"].tolist(), strict=True):
        found.setdefault(int(job), problem.kernels[int(identity)].kernel.name)
    return found


@each_device
def test_requests_come_when_they_came_with_the_lengths_that_they_had() -> None:
    problem = chat({"times_us": TIMES, **LENGTHS})
    episode = played(problem)
    assert requests(episode) == {0: (5.0, 1), 1: (30.0, 5), 2: (200.0, 2)}
    assert prefills(problem, episode) == {0: "prefill_4", 1: "prefill_8", 2: "prefill_4"}
    # 40 us for the first; 80 us and four decode steps from 45 us on, three of which have more than 8 tokens.
    ended = dict(zip(*(episode.timeline.jobs.dict()[name].tolist() for name in ("job", "completed_us")), strict=True))
    assert ended == {0.0: 45.0, 1.0: 45.0 + 80 + 4 * 12, 2.0: 250.0}


@each_device
def test_a_trace_that_repeats_does_so_with_its_lengths() -> None:
    """It is 297.5 us long, as there is a mean gap behind its last request."""
    episode = played(chat({"times_us": TIMES, "at_end": "repeats", **LENGTHS}, horizon_us=700.0))
    assert requests(episode) == {
        0: (5.0, 1), 1: (30.0, 5), 2: (200.0, 2), 3: (302.5, 1), 4: (327.5, 5), 5: (497.5, 2), 6: (600.0, 1),
    }  # fmt: skip


@each_device
def test_seeds_begin_elsewhere_in_a_trace() -> None:
    trace = {"times_us": [float(100 * k) for k in range(8)], "window": "drawn", "at_end": "repeats", "to_us": 800.0}
    trace |= {"prompts": [1] * 8, "answers": list(range(1, 9))}
    found = [requests(played(chat(trace, horizon_us=790.0), seed)) for seed in range(4)]
    first_us = [each[0][0] for each in found]
    assert len(set(first_us)) == 4
    for each in found:
        # 100 us apart, and each answer a token longer than the one before, or behind the eighth the first one.
        assert [us - each[0][0] for us, _ in each.values()] == pytest.approx([100.0 * k for k in range(len(each))])
        assert [answer for _, answer in each.values()] == [(each[0][1] - 1 + k) % 8 + 1 for k in range(len(each))]


@each_device
def test_only_one_of_the_lengths_may_be_recorded_and_be_clipped() -> None:
    trace = {"times_us": TIMES, "prompts": [4, 8, 2]}
    problem = chat(trace, prompt={"kind": "recorded", "most": 3}, answer={"kind": "values", "values": [3]})
    episode = played(problem)
    assert requests(episode) == {0: (5.0, 3), 1: (30.0, 3), 2: (200.0, 3)}
    assert set(prefills(problem, episode).values()) == {"prefill_4"}


@each_device
def test_a_trace_is_cut_and_scaled_and_ends() -> None:
    trace = {"times_us": [0.0, 10.0, 20.0, 30.0, 90.0], "from_us": 10.0, "to_us": 50.0, "speed": 0.5, "start_us": 7.0}
    tenant = {"name": "a", "workload": "toy_urgent", "arrivals": {"kind": "trace", **trace}}
    data = {"name": "test", "gpu": "toy-4sm", "horizon_us": 5000.0, "stream_priorities": [0], "tenants": [tenant]}
    problem = build_problem(make_scenario(data))
    assert played(problem).timeline.jobs.dict()["arrived_us"].tolist() == [7.0, 27.0, 47.0]
    assert problem.knowledge.tenants[0].jobs_a_us == pytest.approx(3 / 80)
    # Nobody sends a job any more after 30 us, and after two.
    for change, left in (({"arrivals_until_us": 30.0}, 2), ({"tenants": [tenant | {"jobs": 1}]}, 1)):
        episode = played(build_problem(make_scenario(data | change)))
        assert len(episode.timeline.jobs) == left


@each_device
def test_a_request_that_can_never_be_held_is_rejected_when_it_arrives() -> None:
    lengths = {"prompts": [4, 8, 4, 11], "answers": [2, 9, 1, 2]}
    problem = chat({"times_us": [0.0, 10.0, 20.0, 100.0], **lengths}, cache_tokens=12)
    episode = played(problem)
    # Request 1 would need 16 places. The others run as if it had not come; 11 tokens are prefilled in two steps.
    assert episode.timeline.kernels.array[:, [2, 4, 7]].tolist() == [
        [0, 0.0, 40.0],
        [2, 40.0, 80.0],
        [0, 80.0, 90.0],
        [3, 100.0, 180.0],
        [3, 180.0, 220.0],
        [3, 220.0, 232.0],
    ]
    assert episode.timeline.rejections.array.tolist() == [[0, 1, 10.0, 10.0]]
    assert (episode.costs.rejected.tolist(), episode.costs.completed.tolist()) == ([1], [3])
    # Charged as if it stayed to the horizon of 400 us and then took as long as a mean request that fits.
    alone_us = (50.0 + 40.0 + 132.0) / 3.0
    assert episode.costs.jobs_us[0] == pytest.approx(90.0 + 60.0 + 132.0 + (390.0 + alone_us))


def test_both_devices_play_a_trace_of_a_file_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "asked.csv"
    rows = [f"{37 * k + k * k % 11},{1 + 5 * k % 8},{1 + 7 * k % 8}" for k in range(40)]
    path.write_text("time_us,prompt,answer\n" + "\n".join(rows))
    for seed in range(3):
        # A cache of 10 tokens cannot hold half of the requests.
        for at_end, cache_tokens in (("ends", 20), ("repeats", 20), ("repeats", 10)):
            trace = {"file": str(path), "window": "drawn", "at_end": at_end}
            problem = chat(trace, horizon_us=1000.0, cache_tokens=cache_tokens)
            episodes = []
            for device in ("reference", "compiled"):
                monkeypatch.setattr(problems, "DEVICE", device)
                episodes.append(played(problem, seed))
            ours, theirs = (episode.timeline for episode in episodes)
            assert len(ours.jobs) > 3
            assert (len(ours.rejections) > 3) == (cache_tokens == 10)
            for table in ("jobs", "rejections", "requests", "kernels"):
                assert getattr(ours, table).array.tolist() == getattr(theirs, table).array.tolist(), (seed, table)
            assert episodes[0].metrics.cost == episodes[1].metrics.cost


@pytest.mark.parametrize(
    ("trace", "batching", "message"),
    [
        ({"times_us": TIMES}, {}, "tenant chat: batching.prompt is recorded, but nothing has recorded it; the tenant"),
        ({"times_us": TIMES, "prompts": [1, 2, 3]}, {}, "batching.answer is recorded, but nothing has recorded it"),
        ({"file": "no.csv"}, {}, r"scenario test: tenants\[0\].arrivals: no.csv: cannot be read"),
        # Together: no request has the shortest prompt and the shortest answer.
        (
            {"times_us": TIMES, "prompts": [8, 2, 8], "answers": [1, 8, 2]},
            {"cache_tokens": 7},
            "the shortest, of 8 tokens with an answer of 1, needs 8; have a larger cache",
        ),
    ],
)
def test_what_an_engine_lacks_is_said(trace: dict[str, Any], batching: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chat(trace, **batching)


def test_a_mean_request_of_a_trace_alone() -> None:
    """The pairs (3, 9) and (8, 1): 40 us with 5 short and 3 long decode steps, and 80 us."""
    program = chat({"times_us": [0.0, 1.0], "prompts": [3, 8], "answers": [9, 1]}).programs[0]
    assert program.alone_us == pytest.approx((40.0 + 5 * 10 + 3 * 12 + 80.0) / 2)
    assert program.answer_us == 60.0
