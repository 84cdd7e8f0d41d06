"""Tenants that are serving engines, in problems: their steps, a request alone, and what wrong ones are told."""

from __future__ import annotations

import copy
import re
import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.data import read_recorded
from gpusched_env.episodes.cautions import cautions
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario, make_scenario
from gpusched_env.workload.workload import Variant, decode_workload, encode_workload
from tests.refusals import refused

TENANT: dict[str, Any] = {
    "name": "chat",
    "workload": "toy_engine",
    "arrivals": {"kind": "backlog"},
    "jobs": 1,
    "batching": {
        "max_batch": 4,
        "cache_tokens": 50,
        "prompt": {"kind": "values", "values": [3, 8]},
        "answer": {"kind": "values", "values": [1, 4, 9]},
    },
}


def problem(tenant: dict[str, Any] = TENANT, **fields: Any) -> Problem:
    data = {"name": "test", "gpu": "toy-4sm", "horizon_us": 1e5, "stream_priorities": [0], "tenants": [tenant]}
    return build_problem(make_scenario(data | fields))


def changed(path: str, value: Any) -> dict[str, Any]:
    """:data:`TENANT` with another value."""
    tenant: Any = copy.deepcopy(TENANT)
    holder, (*above, last) = tenant, path.split(".")
    for step in above:
        holder = holder[step]
    holder[last] = value
    return dict(tenant)


def test_steps_are_in_order_of_their_sizes_whatever_the_order_of_the_recording() -> None:
    workload = read_recorded("toy_engine")
    backwards = msgspec.structs.replace(workload, variants=workload.variants[::-1])
    scenario = make_scenario({"name": "test", "gpu": "toy-4sm", "horizon_us": 1.0, "tenants": [TENANT]})
    for recorded in (workload, backwards):
        program = build_problem(scenario, workloads={"toy_engine": recorded}).programs[0]
        assert program.sizes == ((0, 4), (0, 8), (1, 8), (1, 16), (2, 8), (2, 16), (4, 8), (4, 16))
        assert [job[0].device_us for job in program.variants] == [40.0, 80.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0]


def test_a_mean_request_alone() -> None:
    (program,) = problem().programs
    # A prompt of 3 takes 40 us and has contexts of 4 and more, one of 8 takes 80 us and has 9 and more.
    alone_us = [40.0, 40 + 3 * 10.0, 40 + 5 * 10 + 3 * 12.0, 80.0, 80 + 3 * 12.0, 80 + 8 * 12.0]
    assert program.alone_us == pytest.approx(statistics.fmean(alone_us))
    assert program.answer_us == 60.0
    # Half of the prompts need the longer prefill; six requests have 3 + 5 short decode steps, and 3 + 3 + 8 long ones.
    assert program.repeats == pytest.approx((0.5, 0.5, 8 / 6, 14 / 6, 0, 0, 0, 0))
    known = problem().knowledge.tenants[0]
    assert (known.alone_us, known.device_us) == (60.0, 60.0)
    assert known.demand.busy == pytest.approx(1.0)


@given(
    prompts=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    answers=st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
def test_a_mean_request_is_the_mean_over_requests(prompts: list[int], answers: list[int]) -> None:
    tenant = changed("batching.prompt.values", prompts)
    tenant["batching"]["answer"]["values"] = answers
    alone_us = [
        (40.0 if p <= 4 else 80.0) + sum(10.0 if context <= 8 else 12.0 for context in range(p + 1, p + a))
        for p in prompts
        for a in answers
    ]
    assert problem(tenant).programs[0].alone_us == pytest.approx(statistics.fmean(alone_us))


def test_a_mean_request_is_one_that_can_be_held() -> None:
    # Of six, (8, 9) needs 16 places, and has contexts of 9 to 16 tokens.
    (all_six,) = problem().programs
    (five,) = problem(changed("batching.cache_tokens", 15)).programs
    assert five.alone_us == pytest.approx((6.0 * all_six.alone_us - (80.0 + 8 * 12.0)) / 5.0)
    # Recorded decode steps hold 16 tokens of a request, a prefill 8: 11 take two.
    (longer,) = problem(changed("batching.prompt.values", [11, 17])).programs
    assert longer.engine is not None
    assert (longer.engine.longest_request, longer.engine.fitting.count, longer.engine.fitting.asked) == (16, 2, 6)
    assert longer.alone_us == pytest.approx(statistics.fmean([80.0 + 40.0, 80.0 + 40.0 + 3 * 12.0]))


def test_what_cannot_be_held_is_said() -> None:
    assert cautions(problem()) == []
    (said,) = cautions(problem(changed("batching.cache_tokens", 15)))
    assert said == (
        "chat: 16.7% of its requests (2 prompts, each with any of 3 answers) are longer than the 15 tokens that its "
        "cache and the steps of toy_engine hold of one: it rejects them when they arrive."
    )
    trace = {"kind": "trace", "times_us": [0.0, 1.0], "prompts": [3, 8], "answers": [9, 9]}
    recorded = {"cache_tokens": 15, "prompt": {"kind": "recorded"}, "answer": {"kind": "recorded"}}
    tenant = {**TENANT, "arrivals": trace, "batching": TENANT["batching"] | recorded}
    (said,) = cautions(problem(tenant))
    assert said.startswith("chat: 1 of 2 requests are longer than the 15 tokens")


def test_lengths_of_a_whole_trace_are_values() -> None:
    """Every prompt with every answer: 40,000 by 40,000 are not made."""
    tenant = changed("batching.prompt.values", [3, 8] * 20_000)
    tenant["batching"]["answer"]["values"] = [1, 4, 9, 9] * 10_000
    few = changed("batching.answer.values", [1, 4, 9, 9])
    assert problem(tenant).programs[0].repeats == problem(few).programs[0].repeats


def test_an_engine_has_all_its_steps_without_variation_too() -> None:
    assert len(problem(variation=False).programs[0].variants) == 8
    plain = {name: value for name, value in TENANT.items() if name != "batching"}
    assert len(problem(plain, variation=False).programs[0].variants) == 1


def test_an_engine_may_launch_its_steps_as_graphs() -> None:
    (program,) = problem(TENANT | {"launch": "graph"}).programs
    assert program.sizes[-1] == (4, 16)
    assert [len(job[0].nodes) for job in program.variants] == [1] * 8


def test_steps_stay_with_a_workload_that_is_slowed_or_carried_over() -> None:
    (slow,) = problem(stretch=2.0).programs
    assert slow.answer_us == 120.0
    assert problem(gpu="h100-sxm").programs[0].sizes == slow.sizes


@pytest.mark.parametrize(
    ("tenant", "message"),
    [
        (
            changed("workload", "toy_urgent"),
            r"tenant chat has batching, but workload toy_urgent has no variant whose step is a prefill; record one, or "
            "leave batching out",
        ),
        (
            changed("batching.cache_tokens", 2),
            "tenant chat can hold no request: batching.cache_tokens is 2, workload toy_engine has steps of 2 tokens a",
        ),
        (
            changed("batching.answer.values", [20, 15]),
            "has steps of 16 tokens a request, but the shortest, of 3 tokens with an answer of 15, needs 17; have a",
        ),
        (
            changed("batching.max_batch", 5),
            r"no decode step of 5 requests \(batching.max_batch\); recorded are 1 x 8, .*4 x 16: record a larger one",
        ),
        (
            TENANT | {"iteration_us": 10.0},
            "tenant chat: iteration_us is 10, but steps of a serving engine differ in length; leave it out, or set ",
        ),
        (changed("batching.max_batch", 0), r"tenants\[0\].batching.max_batch: Expected `int` >= 1"),
        (changed("batching.prompt", {"kind": "normal"}), r"batching.prompt.kind: .*'normal'; .*kinds and their fields"),
        (changed("batching.prompt.values", []), r"batching.prompt.values: "),
        (
            changed("batching.prompt", {"kind": "lognormal", "median": 4, "sigma": 1, "least": 5, "most": 3}),
            r"batching.prompt: least is 5, must be at most 3, as most is",
        ),
    ],
)
def test_wrong_engines_are_told_what_would_be_right(tenant: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        problem(tenant)


def test_an_engine_without_decode_steps_can_answer_with_one_token_only() -> None:
    workload = read_recorded("toy_engine")
    prefills = msgspec.structs.replace(workload, variants=workload.variants[:2])
    data = {"name": "test", "gpu": "toy-4sm", "horizon_us": 1.0, "tenants": [TENANT]}
    with refused(InputError, "toy_engine", "decode"):
        build_problem(make_scenario(data), workloads={"toy_engine": prefills})
    one = data | {"tenants": [changed("batching.answer.values", [1])]}
    assert build_problem(make_scenario(one), workloads={"toy_engine": prefills}).programs[0].alone_us == 60.0


def test_the_page_shows_a_scenario_and_steps_as_they_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "continuous-batching.md").read_text(encoding="utf-8")
    shown, part = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (program,) = build_problem(make_scenario(yaml.safe_load(shown))).programs
    assert (program.alone_us, program.answer_us, program.tenant.slo_us) == (80.0, 40.0, 100.0)
    (steps,) = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    variants = read_recorded("toy_engine").variants
    assert [msgspec.json.decode(line, type=Variant) in variants for line in steps.splitlines()] == [True, True]
    # The other scenario is a file, which plays the trace beside it.
    example = Path(__file__).parents[2] / "docs" / "examples" / "chat_trace.yaml"
    assert set(part.splitlines()) <= set(example.read_text(encoding="utf-8").splitlines())
    replay = build_problem(load_scenario(example)).programs[0].replay
    assert replay is not None
    assert len(replay.times_ps) == 300
    assert replay.jobs_a_us == pytest.approx(30e-6)


def test_a_step_is_recorded_once(tmp_path: Path) -> None:
    workload = read_recorded("toy_engine")
    assert decode_workload(encode_workload(workload), "here") == workload
    twice = msgspec.to_builtins(workload)
    twice["variants"] = [*twice["variants"], twice["variants"][3]]
    with refused(InputError, "variants[8].step", "variants[3]"):
        decode_workload(msgspec.json.encode(twice), "here")
