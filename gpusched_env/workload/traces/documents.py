"""Requests in JSON documents: gaps of Orion, workloads of DISB, and times of one's own."""

from __future__ import annotations

import itertools
from typing import Final

import msgspec

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.reading import decoded
from gpusched_env.workload.traces.requests import MOST_REQUESTS, RequestList, Requests, unit_clock
from gpusched_env.workload.traces.tables import UNITS_US

MOST_BYTES: Final = 2**24
"""Of a document, which is in memory as a whole."""


class _Load(msgspec.Struct):
    type: str
    frequency: float = 0.0
    """A second."""
    trace: list[float] = []
    """Milliseconds."""


class _Task(msgspec.Struct):
    id: str
    load: _Load


class _Document(msgspec.Struct):
    time: float = 0.0
    """Seconds that a benchmark lasts."""
    tasks: list[_Task] = []
    times_us: list[float] = []
    times_ms: list[float] = []
    times_s: list[float] = []
    gaps_s: list[float] = []
    prompts: list[int] = []
    answers: list[int] = []


def read_document(data: bytes, where: str, task: str | None) -> Requests:
    """The requests of a document; ``task`` names one of DISB's.

    Raises:
        InputError: as :func:`~gpusched_env.workload.traces.reading.read_requests`.
    """
    if len(data) > MOST_BYTES:
        raise InputError(f"{where}: more than {MOST_BYTES} bytes of one JSON document; write JSON lines")
    if data.lstrip()[:1] == b"[":
        gaps = decoded(data, list[float], where)
        if len(gaps) > 2 and all(before < after for before, after in itertools.pairwise(gaps)):
            raise InputError(
                f"{where}: a list is of gaps in seconds, but these ascend as times do; "
                'name them: {"gaps_s": [...]} or {"times_us": [...]}'
            )
        return _listed(_Document(gaps_s=gaps), where)
    found = decoded(data, _Document, where)
    if found.tasks:
        return _load(found, where, task)
    if task is not None:
        raise InputError(f"{where}: has no tasks; leave task out, which is {task!r}")
    return _listed(found, where)


def _listed(found: _Document, where: str) -> Requests:
    times = {f"times_{unit}": getattr(found, f"times_{unit}") for unit in UNITS_US}
    # The first request comes at once, the others each after a gap.
    times["gaps_s"] = list(itertools.accumulate(found.gaps_s, initial=0.0)) if found.gaps_s else []
    given = [name for name, values in times.items() if values]
    if len(given) != 1:
        raise InputError(
            f"{where}: has {' and '.join(given) or 'no times'}, must have one of {', '.join(times)}, tasks"
        )
    (name,) = given
    lengths = {each: getattr(found, each) for each in ("prompts", "answers") if getattr(found, each)}
    for each, values in lengths.items():
        if len(values) != len(times[name]):
            raise InputError(f"{where}: {each} has {len(values)} lengths, must have {len(times[name])}, one a request")
    names = [name, *(each if each in lengths else None for each in ("prompts", "answers"))]
    listed = RequestList(where, names, unit_clock(UNITS_US[name.rpartition("_")[2]]), "request")
    for place, cells in enumerate(zip(times[name], *lengths.values(), strict=True)):
        listed.add(place, cells)
    return listed.requests()


def _load(found: _Document, where: str, task: str | None) -> Requests:
    """Of a task of DISB's: the trace or the period of its load."""
    loads = {each.id: each.load for each in found.tasks}
    timed = [name for name, load in loads.items() if load.type in ("trace", "periodic")]
    if task is None and len(timed) != 1:
        raise InputError(f"{where}: has several tasks; name one by task: {', '.join(timed or loads)}")
    name = timed[0] if task is None else task
    if name not in loads:
        raise InputError(f"{where}: unknown task {name!r}; {did_you_mean(name, loads)}")
    load = loads[name]
    if load.type == "periodic":
        count = load.frequency * found.time
        if not 1.0 <= count <= MOST_REQUESTS:
            raise InputError(
                f"{where}: task {name}: frequency {load.frequency:g} a second for time {found.time:g} s makes "
                f"{count:g} requests, must be 1 to {MOST_REQUESTS}"
            )
        return _listed(_Document(times_us=[i * 1e6 / load.frequency for i in range(int(count))]), where)
    if load.type == "trace":
        return _listed(_Document(times_ms=load.trace), f"{where}: task {name}")
    raise InputError(f"{where}: task {name} has no times, its load is {load.type}; write arrivals: {_instead(load)}")


def _instead(load: _Load) -> str:
    """The arrivals of a scenario that are a load without times."""
    kinds = {"poisson": f"{{kind: poisson, rate_per_s: {load.frequency:g}}}", "continuous": "{kind: closed-loop}"}
    return kinds.get(load.type, "of one of the other kinds")
