"""Files of requests in each format that is published, and what broken ones are told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.workload import requests
from gpusched_env.workload.requests import read_requests
from tests.refusals import refused

AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 23:59:59.9000000,374,44
2023-11-17 00:00:00.0001230,396,109
2023-11-17 00:01:00.0000000,879,0
"""
AZURE_2024 = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,2,1
2024-05-10 02:00:01.009930+02:00,3,4
"""
VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396,109\n"
SPLITWISE = """\
request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size
0,2,0,0.5,1,100,20
1,2,0,0.75,1,7,8
"""
BURST = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
5,GPT-4,417,0,417,API log
"""
MOONCAKE = """\
{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}

{"timestamp": 2999, "input_length": 7322, "output_length": 490, "hash_ids": []}
"""
DISB: dict[str, Any] = {
    "time": 1,
    "tasks": [
        {"id": "r", "load": {"type": "trace", "trace": [0, 150, 258]}, "client": {"name": "r"}},
        {"id": "p", "load": {"type": "periodic", "priority": 0, "frequency": 4}},
        {"id": "c", "load": {"type": "continuous"}},
        {"id": "e", "load": {"type": "poisson", "frequency": 20}},
    ],
}


def written(folder: Path, text: str, name: str = "trace") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "times_us", "prompts", "answers"),
    [
        # Days go on; ten millionths of a second are cut to millionths.
        (AZURE, [0.0, 100_123.0, 60_100_000.0], [374, 396, 879], [44, 109, 1]),
        (AZURE_2024, [0.0, 1e6], [2, 3], [1, 4]),
        (VIDUR, [0.0, 4_314_579.0], [374, 396], [44, 109]),
        (SPLITWISE, [500_000.0, 750_000.0], [100, 7], [20, 8]),
        (BURST, [5e6, 5e6], [472, 417], [18, 1]),
        (MOONCAKE, [0.0, 2_999_000.0], [6758, 7322], [500, 490]),
        ("time_ms,answer\n1.5,3\n\n2,4\n", [1500.0, 2000.0], None, [3, 4]),
        ("\ufefftime_s\r\n0\r\n0.25\r\n", [0.0, 250_000.0], None, None),
        ('{"time_us": 3, "prompt": 2}\n{"time_us": 4, "prompt": 1}', [3.0, 4.0], [2, 1], None),
        ("[0.031, 0.012, 0.073]", [0.0, 31_000.0, 43_000.0, 116_000.0], None, None),
        ('{"gaps_s": [1, 2]}', [0.0, 1e6, 3e6], None, None),
        ('{\n"times_ms": [1, 2],\n"prompts": [5, 6], "answers": [7, 8]}', [1000.0, 2000.0], [5, 6], [7, 8]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_formats_are_recognised(
    tmp_path: Path, text: str, times_us: list[float], prompts: list[int] | None, answers: list[int] | None, zipped: bool
) -> None:
    path = written(tmp_path, text)
    if zipped:
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = read_requests(path)
    assert found.times_us.tolist() == pytest.approx(times_us, abs=1e-6)
    assert [None if each is None else each.tolist() for each in (found.prompts, found.answers)] == [prompts, answers]


def test_a_task_of_disb_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(DISB))
    assert read_requests(path, "r").times_us.tolist() == [0.0, 150_000.0, 258_000.0]
    assert read_requests(path, "p").times_us.tolist() == [0.0, 250_000.0, 500_000.0, 750_000.0]
    alone = written(tmp_path, json.dumps(DISB | {"tasks": DISB["tasks"][1:]}), "alone")
    assert len(read_requests(alone).times_us) == 4
    for task, message in (
        (None, "has several tasks; name one by task: r, p$"),
        ("x", "unknown task 'x'"),
        ("c", "task c has no times, its load is continuous; write arrivals: {kind: closed-loop}"),
        ("e", r"its load is poisson; write arrivals: {kind: poisson, rate_per_s: 20}"),
    ):
        with pytest.raises(InputError, match=message):
            read_requests(path, task)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "trace: is empty"),
        (" \n ", "trace: is empty"),
        ("time_us\n", "trace: has no requests"),
        ("a,b\n1,2\n", "the first line is 'a, b', must name the columns of a known format: TIMESTAMP, ContextTokens"),
        ("1.5\n2.5\n", "the first line is '1.5', must name"),
        ("Timestamp,Value\n1,2\n", "the first line is 'Timestamp, Value'"),
        ("time_us\n5\n4\n", "line 3: time_us is '4', before that of the request above it; sort the file"),
        ("time_us\n-1\n", "line 2: time_us is '-1', must be at least 0"),
        ("time_us\n1\n-1\n", "line 3: time_us is '-1', before that of"),
        ("time_us\nnan\n", "line 2: time_us is 'nan', must be a number"),
        ("time_us\n\ninf\n", "line 3: time_us is 'inf', must be at least 0 and at most 1e.14 us"),
        ("time_s\n1e9\n", "line 2: time_s is '1e9', must be at least 0 and at most"),
        ("time_us,prompt\n1\n", "line 2 has 1 fields, must have 2, as the first line"),
        (VIDUR.replace("396", "3.5"), "line 3: num_prefill_tokens is '3.5', must be a whole number of tokens"),
        (VIDUR.replace("109", "-1"), "line 3: num_decode_tokens is '-1'"),
        (VIDUR.replace("109", "2000000"), "must be a whole number of tokens from 0 to 1048576"),
        (VIDUR.replace("109", ""), "line 3: num_decode_tokens is ''"),
        (VIDUR.replace("num_decode_tokens", "decode"), "the first line is"),
        (
            AZURE.replace("2023-11-17 00:01", "00:01"),
            "line 4: TIMESTAMP is '00:01:00.0000000', must be a number, or in",
        ),
        (AZURE.replace("2023-11-17 00:01", "2023-11-15 00:01"), "line 4: TIMESTAMP is .*, before that of the request"),
        (MOONCAKE + '{"timestamp": 3000}', "line 4: input_length is 'None', must be a whole number"),
        (MOONCAKE.replace("2999", "true"), "line 3: timestamp is 'True', must be a number"),
        (MOONCAKE + "{", "line 4: not valid JSON"),
        ("time_us\n" + "1" * 200_000, "line 2: no comma-separated values"),
        ("[1, 2, 3]", "a list is of gaps in seconds, but these ascend as times do; name them"),
        ("[-1.0]", "request 1: gaps_s is '-1.0', must be at least 0"),
        ("[[1]]", r"\[0\]: Expected `float`, got `array`"),
        ("[" * 100_000, "trace: "),
        ("{}", "has no times, must have one of times_us, times_ms, times_s, gaps_s, tasks"),
        ('{"times_us": [1], "times_s": [1]}', "has times_us and times_s, must have one of"),
        ('{"times_us": [1, 2], "prompts": [1]}', "prompts has 1 lengths, must have 2, one a request"),
        ('{"times_us": [1, 2', "not valid JSON"),
        (
            json.dumps({"time": 1e9, "tasks": [{"id": "p", "load": {"type": "periodic", "frequency": 1e9}}]}),
            "1e.18 req",
        ),
        (json.dumps({"time": 1, "tasks": [{"id": "p", "load": {"type": "trace", "trace": []}}]}), "p: has no times"),
    ],
)
def test_broken_files_are_told_in_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_requests(written(tmp_path, text))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


def test_what_is_too_long_or_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_REQUESTS", 2)
    with refused(InputError, "line 4", "2 requests"):
        read_requests(written(tmp_path, "time_us\n1\n2\n3\n"))
    with refused(InputError, "'r'", "task"):
        read_requests(written(tmp_path, "time_us\n1\n"), "r")
    with refused(InputError, "cannot be read"):
        read_requests(tmp_path / "none")
    bad = tmp_path / "bad"
    bad.write_bytes(gzip.compress(b"time_us\n1\n")[:-5])
    with refused(InputError, "truncated"):
        read_requests(bad)
    # Bytes that are no text, in a column that is not read.
    bad.write_bytes(b"time_us,who\n1,\xff\xfe\n")
    assert read_requests(bad).times_us.tolist() == [1.0]
