"""Errors of predictions, the rivals that a simulator must beat, and how much better it predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.data import recorded_names
from gpusched_env.display.frame import frame
from gpusched_env.experiments.lib.recorded import GraphPair
from gpusched_env.experiments.validate.recordings import (
    MODEL_PAIRS,
    ModelSolo,
    RecordedScenario,
    Recordings,
    SyntheticKernel,
    find,
    read_rows,
)
from gpusched_env.experiments.validate.replay import BLOCK_GAP_US, stream_starts
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.workload import OpKind, Workload

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


REPRODUCIBLE = 0.05
"""A launch whose ends over the repetitions lie within this share of its end is reproducible."""
WORST_SHOWN = 10
TIMES = ("start_us", "end_us", "measured_start_us", "measured_us", "error", "noise", "beyond", "reproducible")
COLUMNS = ("set", "number", "scenario", "launch", "kernel", "stream", "priority", "among", *TIMES)


def launches(sets: Mapping[str, Sequence[tuple[RecordedScenario, Any]]]) -> DataFrame:
    """All launches of predicted scenarios by the name of their set, a row each.

    ``number``: of the scenario in its file, from 0, and ``launch`` in the scenario. ``among``: how many launches ran at
    the midpoint of its measured time, itself included. Times are in us since the release; ``error`` is the signed
    relative one of the end. ``noise``: width of the band that the ends of the repetitions lie in, over the end;
    ``beyond``: how far the predicted end lies outside of that band, over the end. ``reproducible``: the repetitions
    agree.

    Args:
        sets: scenarios, and predicted start and end of their launches, shape ``(launches, 2)``.
    """
    rows = []
    for name, predictions in sets.items():
        for number, (scenario, times) in enumerate(predictions):
            among = concurrency(scenario)
            for i, launch in enumerate(scenario.launches):
                measured, (least_us, most_us) = scenario.measured[i], scenario.end_min_max_us[i]
                row = {"set": name, "number": number, "scenario": scenario.id, "launch": i, "kernel": launch.kernel}
                row |= {"stream": launch.stream, "priority": launch.priority, "among": among[i]}
                row |= {"start_us": times[i, 0], "end_us": times[i, 1]}
                row |= {"measured_start_us": measured.start_us, "measured_us": measured.end_us}
                noise, end_us = (most_us - least_us) / measured.end_us, float(times[i, 1])
                nearest_us = min(max(end_us, least_us), most_us)
                row |= {"error": end_us / measured.end_us - 1.0, "noise": noise, "reproducible": noise <= REPRODUCIBLE}
                rows.append({**row, "beyond": abs(end_us - nearest_us) / measured.end_us})
    return frame(rows).reindex(columns=COLUMNS)


def concurrency(scenario: RecordedScenario) -> list[int]:
    """The number of launches that ran at the midpoint of each launch's measured time, itself included."""
    start = np.array([m.start_us for m in scenario.measured])
    end = np.array([m.end_us for m in scenario.measured])
    return [max(1, int(((start <= middle) & (middle <= end)).sum())) for middle in (start + end) / 2]


def spread(errors: Any) -> dict[str, float] | None:
    """Median, 90th and 95th percentile of absolute errors; ``None`` if there are none."""
    if not len(errors):
        return None
    median, p90, p95 = np.percentile(np.abs(errors), (50, 90, 95)).tolist()
    return {"median": median, "p90": p90, "p95": p95}


def score(found: DataFrame) -> dict[str, Any] | None:
    """The figures of the :func:`launches` of one set; ``None`` if there are none."""
    if not len(found):
        return None
    by_scenario = found.groupby("number", sort=False)
    last = by_scenario[["end_us", "measured_us"]].max()
    ranks = [_rank_correlation(of) for _, of in by_scenario]
    kept = found[found.reproducible]
    return {
        "n": len(found),
        "n_reproducible": len(kept),
        "end_error": spread(found.error),
        "beyond_noise": spread(found.beyond),
        "within_noise": float((found.beyond == 0.0).mean()),
        "noise": spread(found.noise),
        "reproducible_end_error": spread(kept.error),
        "makespan_error": spread(last.end_us / last.measured_us - 1.0),
        "rank_correlation": float(np.mean(ranks)),
        "rank_correlation_p10": float(np.percentile(ranks, 10)),
    }


def brief(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """What a set's :func:`score` is held to: errors of all launches."""
    ends = figures["end_error"] or {"median": None, "p90": None}
    makespan = figures["makespan_error"]["median"]
    return {"median": ends["median"], "p90": ends["p90"], "makespan_median": makespan}


def _rank_correlation(scenario: DataFrame) -> float:
    """Spearman's correlation of predicted and measured ends; 1 for a single launch."""
    # Ends within a step of the timer are equal by chance: they stay in order of issue instead of sharing a rank.
    ranks = scenario[["end_us", "measured_us"]].rank(method="first")
    return float(np.corrcoef(ranks.end_us, ranks.measured_us)[0, 1]) if len(ranks) > 1 else 1.0


def halves(found: DataFrame) -> dict[str, Any]:
    """The figures of the scenarios with even and with odd numbers; ``None`` for a half without any.

    The number is that at the end of a scenario's id, else its position in the file.
    """
    named = found.scenario.str.extract(r"(\d+)$")[0]
    odd = named.fillna(found.number).astype(int) % 2 == 1
    return {"even": score(found[~odd]), "odd": score(found[odd])}


def worst_launches(found: DataFrame, count: int = WORST_SHOWN) -> DataFrame:
    """The launches furthest beyond their noise, worst first, at most one a scenario."""
    worst = found.reindex(found.beyond.astype(float).sort_values(ascending=False, kind="stable").index)
    return worst.drop_duplicates(["set", "number"]).head(count)


PRIORITY = "priority"
"""The mode in which the foreground of a pair is more urgent."""
SIDES = ("foreground", "background")


@dataclass
class _Stream:
    """A stream of the model of SM shares: kernels as (SMs, us alone), one after the other."""

    kernels: Sequence[tuple[float, float]]
    free_us: float
    """When the next kernel may start."""
    priority: int
    done: int = 0
    left_us: float = 0.0
    """What is left of the present kernel, at full speed."""


def ends_of(
    scenarios: Mapping[str, Sequence[RecordedScenario]], kernels: Mapping[str, SyntheticKernel], sms: int
) -> DataFrame:
    """The ends of every launch, a row each in the order of :func:`~gpusched_env.experiments.validate.scoring.launches`:

    ``ready_us``, when its stream starts; ``alone_us``, when it would end if nothing else ran; ``shared_us``, when it
    ends by shares of SMs.
    """
    rows = []
    for of in scenarios.values():
        for scenario in of:
            shared_us = shared_ends(scenario, kernels, sms)
            for i, (ready_us, alone_us) in enumerate(alone_ends(scenario, kernels)):
                rows.append({"ready_us": ready_us, "alone_us": alone_us, "shared_us": shared_us[i]})
    return frame(rows)


def alone_ends(scenario: RecordedScenario, kernels: Mapping[str, SyntheticKernel]) -> list[tuple[float, float]]:
    """When the stream of each launch starts, and when the launch would end if its stream were alone (us)."""
    starts = stream_starts(scenario)
    at = dict(starts)
    found = []
    for launch in scenario.launches:
        ends_us = at[launch.stream] + kernels[launch.kernel].solo.duration_us
        found.append((starts[launch.stream], ends_us))
        at[launch.stream] = ends_us + BLOCK_GAP_US
    return found


def shared_ends(scenario: RecordedScenario, kernels: Mapping[str, SyntheticKernel], sms: int) -> NDArray[np.float64]:
    """When each launch ends by shares of SMs (us), shape ``(launches,)``."""
    own = {n: [i for i, of in enumerate(scenario.launches) if of.stream == n] for n in stream_starts(scenario)}
    starts = stream_starts(scenario)
    streams = []
    for number, rows in own.items():
        of = [kernels[scenario.launches[i].kernel] for i in rows]
        work = [(float(min(sms, kernel.grid)), kernel.solo.duration_us) for kernel in of]
        stream = _Stream(work, starts[number], scenario.launches[rows[0]].priority, left_us=work[0][1])
        streams.append(stream)
    ends_us = np.empty(len(scenario.launches))
    for stream_row, kernel_row, end_us in _played(streams, sms):
        ends_us[[*own.values()][stream_row][kernel_row]] = end_us
    return ends_us


def _played(streams: list[_Stream], sms: int) -> list[tuple[int, int, float]]:
    """Ends (us) of all kernels as (stream, kernel, end)."""
    now_us, found = 0.0, []
    while any(stream.done < len(stream.kernels) for stream in streams):
        open_rows = [row for row, stream in enumerate(streams) if stream.done < len(stream.kernels)]
        running = [row for row in open_rows if streams[row].free_us <= now_us]
        rates = _rates([streams[row] for row in running], sms)
        steps = [streams[row].left_us / rate for row, rate in zip(running, rates, strict=True) if rate > 0.0]
        steps += [streams[row].free_us - now_us for row in open_rows if streams[row].free_us > now_us]
        step_us = min(steps)
        now_us += step_us
        for row, rate in zip(running, rates, strict=True):
            stream = streams[row]
            stream.left_us -= rate * step_us
            if stream.left_us <= 1e-9 * stream.kernels[stream.done][1]:
                found.append((row, stream.done, now_us))
                stream.done, stream.free_us = stream.done + 1, now_us + BLOCK_GAP_US
                if stream.done < len(stream.kernels):
                    stream.left_us = stream.kernels[stream.done][1]
    return found


def _rates(running: Sequence[_Stream], sms: int) -> list[float]:
    """Speed of each present kernel over that alone."""
    left, rates = float(sms), dict[int, float]()
    for priority in sorted({stream.priority for stream in running}):
        level = [stream for stream in running if stream.priority == priority]
        wanted = sum(stream.kernels[stream.done][0] for stream in level)
        rate = min(1.0, left / wanted)
        rates |= {id(stream): rate for stream in level}
        left -= min(wanted, left)
    return [rates[id(stream)] for stream in running]


def constants(pairs: Sequence[GraphPair]) -> list[tuple[float, float]]:
    """The median recorded slowdowns of both sides over all pairs of its mode, for each pair."""
    medians = {
        mode: np.median([pair.recorded for pair in pairs if pair.mode == mode], axis=0).tolist()
        for mode in {pair.mode for pair in pairs}
    }
    return [(medians[pair.mode][0], medians[pair.mode][1]) for pair in pairs]


def shares(pairs: Sequence[GraphPair], workloads: Mapping[str, Workload], sms: int) -> list[tuple[float, float]]:
    """The slowdowns of both sides by shares of SMs, for each pair, if any kernel of the one may meet any of the other.

    Args:
        pairs: of networks.
        workloads: of their networks, by name.
        sms: of the GPU.
    """
    return [
        slowdowns(
            covered(workloads[pair.fg], pair.fg_solo_us, sms),
            covered(workloads[pair.bg], pair.bg_solo_us, sms),
            sms,
            urgent=pair.mode == PRIORITY,
        )
        for pair in pairs
    ]


def covered(workload: Workload, alone_us: float, sms: int) -> NDArray[np.float64]:
    """How much of the time alone so many SMs are covered, shape ``(sms + 1,)``; it sums up to 1.

    Time in which no kernel runs, up to ``alone_us``, covers none.
    """
    time_us = np.zeros(sms + 1)
    for op in workload.variants[0].ops:
        if op.kind is OpKind.KERNEL:
            time_us[min(sms, math.prod(workload.kernels[op.index].grid))] += op.duration_us
    time_us[0] += max(0.0, alone_us - time_us.sum())
    of_time: NDArray[np.float64] = time_us / time_us.sum()
    return of_time


def slowdowns(
    first: NDArray[np.float64], second: NDArray[np.float64], sms: int, *, urgent: bool
) -> tuple[float, float]:
    """The slowdowns of two networks that cover SMs as :func:`covered` says; ``urgent``: the first one goes first."""
    count = np.arange(sms + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        together = np.minimum(1.0, sms / (count[:, None] + count[None, :]))
        rest = np.minimum(1.0, (sms - count)[:, None] / count[None, :])
    # Rows are SMs of the first, columns of the second; what covers none is not slowed down.
    of_first = np.ones_like(together) if urgent else together.copy()
    of_second = rest if urgent else together.copy()
    of_first[0, :] = of_second[:, 0] = 1.0
    found = []
    for speed, own, other in ((of_first, first, second), (of_second.T, second, first)):
        mean = speed @ other
        found.append(float(np.divide(own, mean, out=np.full(len(own), np.inf), where=mean > 0.0)[own > 0.0].sum()))
    return found[0], found[1]


SHIPPED = (
    "h100",
    "h100/unseen_networks",
    "h200",
    "h200/drawn_networks",
    "h200/drawn_20261128",
    "h200/drawn_20261129",
    "h200/drawn_20261130",
)
"""Folders of shipped measurements that may have pairs of networks."""


def of_launches(launches: DataFrame) -> dict[str, Any]:
    """Errors of the ends of a set's launches, see :func:`compared`.

    The constant is the median stretch of a launch of the same urgency over its time alone, from the start of its
    stream.
    """
    alone_us = launches.alone_us - launches.ready_us
    stretch = (launches.measured_us - launches.ready_us) / alone_us
    constant = stretch.groupby(launches.priority < 0).transform("median")
    rival_us = {"constant": launches.ready_us + constant * alone_us, "shares": launches.shared_us}
    errors = {name: (us / launches.measured_us - 1.0).to_numpy() for name, us in rival_us.items()}
    return compared(launches.error.to_numpy(), errors)


def of_networks(
    pairs: Sequence[tuple[GraphPair, tuple[float, float]]], recordings: Recordings, sms: int
) -> dict[str, dict[str, Any]]:
    """Errors of slowdowns, see :func:`compared`, of either side."""
    recorded = np.array([pair.recorded for pair, _ in pairs])
    own = [pair for pair, _ in pairs]
    names = {name for pair in own for name in (pair.fg, pair.bg)}
    workloads = {name: recordings.workloads.get(name) or load_workload(name) for name in names}
    predicted = {
        "simulator": [found for _, found in pairs],
        "constant": constants(own),
        "shares": shares(own, workloads, sms),
    }
    errors = {name: np.array(of) / recorded - 1.0 for name, of in predicted.items()}
    simulated = errors.pop("simulator")
    return {
        side: compared(simulated[:, column], {name: of[:, column] for name, of in errors.items()})
        for column, side in enumerate(SIDES)
    }


def compared(simulator: NDArray[np.float64], rivals: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Median and high percentiles of the absolute errors by predictor, and as ``skill`` what the simulator's median
    error is below the rival's (1: it is exact; 0: no better; below 0: worse)."""
    found: dict[str, Any] = {"n": len(simulator), "simulator": spread(simulator)}
    for name, errors in rivals.items():
        of = spread(errors)
        assert of is not None
        found[name] = {**of, "skill": 1.0 - found["simulator"]["median"] / of["median"] if of["median"] else None}
    return found


def networks_elsewhere(folder: Path) -> set[str]:
    """Networks that were at hand without the recordings of ``folder``: shipped workloads, and those of other shipped
    pairs."""
    found = set(recorded_names())
    for name in SHIPPED:
        with resources.as_file(resources.files("gpusched_env.data") / "measurements" / name) as shipped:
            path = find(shipped, MODEL_PAIRS)
            if path is None or shipped.resolve() == folder.resolve():
                continue
            rows: list[ModelSolo | GraphPair] = read_rows(path, ModelSolo | GraphPair)  # type: ignore[arg-type]
            found |= {name for row in rows if isinstance(row, GraphPair) for name in (row.fg, row.bg)}
    return found
