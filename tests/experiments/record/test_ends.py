"""When blocks of libraries' kernels leave their SMs, recorded without a GPU: rows, and what is launched when."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.errors import GpuError, InputError
from gpusched_env.experiments.record import ends
from gpusched_env.experiments.record.ends import OPERATORS, CupySmWatcher, FreedSms, ends_rows
from gpusched_env.experiments.record.rows import SKIP_REASON
from gpusched_env.experiments.record.run import RecordingPlan, record
from tests.refusals import refused

FREED = FreedSms("gemm", 132, 384, 200_000, 100.0, [80.0, 101.0])
SEVERAL = next(iter(OPERATORS))


class Watcher:
    """An operator that is several kernels, and others that are all the same."""

    def __init__(self) -> None:
        self.head = {"gpu": "fake"}

    def freed(self, operator: str) -> FreedSms:
        if operator == SEVERAL:
            raise GpuError("several kernels")
        return FREED


def test_a_row_an_operator_and_what_cannot_be_told_is_said() -> None:
    rows = list(ends_rows(Watcher(), []))
    assert [row["operator"] for row in rows] == list(OPERATORS)
    assert rows[0] == {"what": SKIP_REASON, "operator": SEVERAL, "error": "several kernels"}
    assert rows[1] == {"what": "ends", "operator": list(OPERATORS)[1], **FREED._asdict()}
    assert [row["operator"] for row in ends_rows(Watcher(), rows[:-1])] == [list(OPERATORS)[-1]]


def test_it_is_recorded_where_it_is_asked_for(tmp_path: Path) -> None:
    assert "ends" not in RecordingPlan(folder=tmp_path).sets
    record(RecordingPlan(folder=tmp_path, sets=("ends",)), lambda *_: None, watcher=Watcher)
    head, *rows = map(json.loads, (tmp_path / "ends.jsonl").read_text().splitlines())
    assert head == {"gpu": "fake"}
    assert len(rows) == len(OPERATORS)
    with refused(InputError, "did you mean 'ends'"):
        RecordingPlan(folder=tmp_path, sets=("end",))


class Launched(CupySmWatcher):
    """Of what is launched, only the order; SMs become free in the reverse of their numbers."""

    def __init__(self, twice_on_one: bool) -> None:
        self.sms, self.most_shared, self.twice_on_one = 4, 200_000, twice_on_one
        self.calls: list[Any] = []

    def freed_by(self, fill: Callable[[], None], us: float) -> list[float]:
        return self._freed(fill, us)

    def _stream(self, number: int, priority: int) -> Any:
        return number, priority

    def _room(self, blocks: int) -> None:
        self.calls.append(("room", blocks))

    def _await_flag(self, stream: Any, number: int) -> None:
        self.calls.append(("flag", stream, number))

    def _launch(self, spec: Any, stream: Any, first: int, copy: bool = False) -> None:
        self.calls.append(("launch", spec.grid, stream, first))

    def _released(self, fill: Callable[[], None], delays_us: dict[int, float]) -> int:
        fill()
        self.calls.append(delays_us)
        return 0

    def _reported(self, firsts: Any, zero: int) -> list[Any]:
        sms = [0, 1, 2, 2 if self.twice_on_one else 3]
        starts = [(1_000 * (40 - sm), 0, sm) for sm in sms]
        return [np.array([(0, 30_000, 0)]), np.array(starts)]


def test_an_urgent_kernel_waits_for_every_sm() -> None:
    gpu = Launched(twice_on_one=False)
    free_us = gpu.freed_by(lambda: gpu.calls.append("operator"), 50.0)
    assert free_us == [7.0, 8.0, 9.0, 10.0], "since the kernel before has ended, sorted"
    low, urgent = (0, 0), (1, ends.URGENT)
    assert gpu.calls == [
        ("room", 5),
        ("flag", low, 0),
        ("launch", 1, low, 0),
        "operator",
        ("flag", urgent, 1),
        ("launch", 4, urgent, 1),
        {0: 30.0, 1: 40.0},
    ]
    with refused(GpuError, "enough"):
        Launched(twice_on_one=True).freed_by(lambda: None, 50.0)


def test_an_operator_of_several_kernels_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Launched(twice_on_one=False)
    monkeypatch.setattr(gpu, "_longest", lambda launch: (None, 50.0, 6.0))
    monkeypatch.setattr(ends, "import_module", lambda name: FakeTorch())
    monkeypatch.setitem(ends.OPERATORS, "two", lambda: None)  # type: ignore[arg-type]
    monkeypatch.setattr(gpu, "_stream", lambda *_: FakeStream())
    with refused(GpuError, "take 6.0", "56.0 us"):
        gpu.freed("two")


class FakeStream:
    ptr = 1


class FakeTorch:
    class cuda:
        ExternalStream = staticmethod(lambda ptr: None)
