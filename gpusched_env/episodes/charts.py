"""What charts, pictures and films show of one episode: its kernels along time, how full the GPU was, how long jobs
took, and the scene at an instant.
"""

from __future__ import annotations

import functools
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.display import palette
from gpusched_env.display.palette import Look, binned_mean, distribution, tenant
from gpusched_env.display.picture import Cut, film
from gpusched_env.display.plots import Bars, Kinds, Panel, Series, areas, curves, timeline
from gpusched_env.display.scene import Floats, Scene
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import COMMANDS
from gpusched_env.scheduling.timeline import Timeline
from gpusched_env.scheduling.view import View

if TYPE_CHECKING:
    from gpusched_env.display.plots import Figure
    from gpusched_env.episodes.metrics import PlayedEpisode


BINS = 300
BUSY, TRAFFIC = Look(palette.GREY), Look(palette.TRAFFIC)
"""Looks of SMs and of DRAM traffic: no tenant's colours."""
SHARE = "share of the GPU"
NOT_RECORDED = "kernels were not recorded: run with record='kernels'"


class EpisodePlots(Kinds):
    """Charts of an episode, as Plotly figures."""

    _usual = "timeline"

    def __init__(self, episode: PlayedEpisode) -> None:
        self._episode = episode
        self._of = f"{episode.problem.scenario.name}, seed {episode.seed}"

    def timeline(self, window_us: tuple[float, float] | None = None) -> Figure:
        """Kernels, a row a tenant, within ``window_us`` (by default the whole episode).

        Raises:
            InputError: kernels were not recorded.
        """
        episode = self._episode
        _check(episode.timeline)
        start_us, end_us = window_us or (0.0, episode.end_us)
        bars = kernel_bars(episode.problem, episode.timeline)
        return timeline(f"{self._of}: kernels", bars, (start_us / 1e3, end_us / 1e3), "tenant")

    def utilisation(self) -> Figure:
        """Busy SMs and DRAM traffic over time.

        Raises:
            InputError: kernels were not recorded.
        """
        episode = self._episode
        _check(episode.timeline)
        shares = usage(episode.problem, episode.timeline, episode.end_us, episode.end_us)
        return areas(f"{self._of}: utilisation", {episode.problem.gpu.name: shares}, episode.end_us / 1e3, SHARE)

    def cdf(self) -> Figure:
        """The distribution of turnaround, a panel a tenant, as shares of the jobs that arrived."""
        episode = self._episode
        jobs = episode.timeline.jobs.array
        panels = []
        for row, program in enumerate(episode.problem.programs):
            mine = jobs[jobs[:, 0] == row]
            curve = distribution((mine[:, 4] - mine[:, 2]) / 1e3, max(1, int(episode.costs.arrived[row])))
            limit = None if program.turnaround_slo_us is None else program.turnaround_slo_us / 1e3
            panels.append(Panel(program.tenant.name, [Series(program.tenant.name, tenant(row), *curve)], limit))
        return curves(f"{self._of}: turnaround", panels, "turnaround, ms", "share of jobs", "SLO")


def kernel_bars(problem: Problem, recorded: Timeline, panel: str = "") -> list[Bars]:
    """Finished kernels as bars, a row a tenant below the title ``panel``; pale while another process has the GPU."""
    table = recorded.kernels.dict()
    order = np.argsort(table["started_us"], kind="stable")
    bars = []
    for number, program in enumerate(problem.programs):
        mine = order[table["tenant"][order] == number]
        texts = [
            f"{problem.kernels[int(table['identity'][i])].kernel.name}<br>job {int(table['job'][i])}, "
            f"launch {int(table['id'][i])}"
            for i in mine
        ]
        name = program.tenant.name
        pieces = [
            (*part, text)
            for i, text in zip(mine, texts, strict=True)
            for part in recorded.parts(number, float(table["started_us"][i]), float(table["ended_us"][i]))
        ]
        for opacity, has_gpu in ((0.75, True), (0.2, False)):
            chosen = [piece for piece in pieces if piece[2] == has_gpu]
            start, end = (np.array([piece[side] for piece in chosen]) / 1e3 for side in (0, 1))
            what = [piece[3] for piece in chosen]
            bars.append(Bars(name, start, end - start, what, tenant(number), opacity, name if has_gpu else "", panel))
    return bars


def usage(problem: Problem, recorded: Timeline, end_us: float, until_us: float) -> dict[str, Series]:
    """Shares of busy SMs and of the nominal DRAM bandwidth, in bins from 0 to ``until_us``; 0 from ``end_us`` on."""
    edges = np.linspace(0.0, until_us, BINS + 1)
    centres_ms = (edges[:-1] + edges[1:]) / 2e3
    steps, gpu = recorded.sms.array, problem.gpu
    columns = {
        "busy SMs": (BUSY, steps[:, 1] / gpu.sms),
        "DRAM bandwidth": (TRAFFIC, steps[:, 2] / gpu.dram_bytes_per_us),
    }
    return {
        label: Series(label, own, centres_ms, binned_mean(steps[:, 0], values, edges, end_us))
        for label, (own, values) in columns.items()
    }


def _check(recorded: Timeline) -> None:
    if recorded.detail in ("none", "jobs"):
        raise InputError(NOT_RECORDED)


NAME = 60
"""Most characters of a kernel's name."""


def window_us(problem: Problem) -> float:
    """A span of time that shows some 25 kernels of a tenant: 1, 2 or 5 times a power of ten."""
    mean = float(np.mean([profile.duration_us for profile in problem.kernels]) + np.mean(problem.gaps_us))
    longest = max(program.alone_us for program in problem.programs)
    span = min(25.0 * mean, 3.0 * longest, problem.scenario.horizon_us)
    power = 10.0 ** math.floor(math.log10(span))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= span * (1 - 1e-9))


def scene(problem: Problem, timeline: Timeline, view: View, title: str, since_us: float = 0.0) -> Scene:
    """What was recorded from ``since_us`` on (jobs: all), and by ``view``, its last state, what is under way."""
    names = [program.tenant.name for program in problem.programs]
    launches = _launches(timeline, view)
    recent = launches[launches[:, 6] >= since_us]
    gpu = problem.gpu
    states = timeline.sms.array
    states = states[max(0, int(np.searchsorted(states[:, 0], since_us)) - 1) :, :3]
    return Scene(
        title=title,
        gpu=gpu.name,
        sms=gpu.sms,
        tenants=names,
        names=[kernel_name(problem, i, NAME) for i in range(len(problem.kernels) + len(problem.graphs))],
        horizon_us=problem.scenario.horizon_us,
        jobs=_jobs(problem, timeline, view),
        kernels=recent[:, 1:],
        blocks=_blocks(problem, timeline, launches, since_us),
        states=states / [1.0, gpu.sms, gpu.dram_bytes_per_us],
        commands=_commands(problem, timeline, launches, since_us),
    )


def last_work_us(timeline: Timeline, view: View) -> float:
    """The last instant at which a kernel was on the GPU, until ``view``: where an episode's last picture is taken."""
    if (view.running.started > 0).any() or len(timeline.kernels) == 0:
        return view.time_us
    return float(np.nextafter(timeline.kernels.column("ended_us").max(), 0.0))


def _launches(timeline: Timeline, view: View) -> Floats:
    """Shape ``(launches, 7)``, in order of their ids: id, tenant, identity, issued, launched, started, ended."""
    finished = timeline.kernels.array[:, [0, 1, 3, 4, 5, 6, 7]]
    running, pending = view.running, view.pending
    unknown, waiting = np.full(len(running), np.inf), np.full(len(pending), np.inf)
    started = np.where(running.started > 0, running.started_us, np.inf)
    # When they were issued is in no view any more: no wait is drawn of them.
    under_way = [running.id, running.tenant, running.identity, running.launched_us, running.launched_us, started]
    held = [pending.id, pending.tenant, pending.identity, pending.issued_us, waiting, waiting, waiting]
    every = np.vstack([finished, np.column_stack([*under_way, unknown]), np.column_stack(held)])
    return every[np.argsort(every[:, 0], kind="stable")]


def _jobs(problem: Problem, timeline: Timeline, view: View) -> Floats:
    done, given_up, there = timeline.jobs.array, timeline.rejections.array, view.jobs
    deadline = np.full(len(done), np.inf)
    for row, program in enumerate(problem.programs):
        slo_us, mine = program.tenant.slo_us, done[:, 0] == row
        if slo_us is not None:
            # A request whose first token was in time has met its own.
            met = (program.engine is not None) & (timeline.answer_us(row) <= slo_us)
            deadline[mine] = np.where(met, np.inf, done[mine, 2] + slo_us)
    never = np.full(max(len(done), len(given_up), len(there)), np.inf)
    completed = [done[:, 0], done[:, 2], done[:, 3], done[:, 4], never[: len(done)], deadline]
    none = never[: len(given_up)]
    rejected = [given_up[:, 0], given_up[:, 2], none, none, given_up[:, 3], none]
    open_ = never[: len(there)]
    unfinished = [there.tenant, there.arrived_us, there.started_us, open_, open_, there.deadline_us]
    return np.vstack([np.column_stack(part) for part in (completed, rejected, unfinished)])


def _blocks(problem: Problem, timeline: Timeline, launches: Floats, since_us: float) -> Floats:
    blocks = timeline.blocks.array
    blocks = blocks[blocks[:, 4] >= since_us]
    of = np.searchsorted(launches[:, 0], blocks[:, 1])
    known = of < len(launches)
    # Of a graph that runs, a view does not show the nodes.
    known[known] = launches[of[known], 0] == blocks[known, 1]
    blocks, rows = blocks[known], launches[of[known]]
    threads = np.array([profile.footprint.threads for profile in problem.kernels])
    share = blocks[:, 2] * threads[rows[:, 2].astype(np.int64)] / problem.gpu.limits.threads
    return np.column_stack([blocks[:, 0], rows[:, 1], share, blocks[:, 3], blocks[:, 4]])


def _commands(problem: Problem, timeline: Timeline, launches: Floats, since_us: float) -> list[tuple[float, str]]:
    names = [program.tenant.name for program in problem.programs]
    decisions = timeline.decisions.array
    decisions = decisions[max(0, int(np.searchsorted(decisions[:, 0], since_us)) - 1) :]
    nodes, rows = timeline.kernels.exact[:, [11, 1]], np.searchsorted(launches[:, 0], decisions[:, 2])
    found = []
    for (when_us, code, launch), row in zip(decisions.tolist(), rows.tolist(), strict=True):
        words = COMMANDS[int(code)].VERB
        if row < len(launches) and launches[row, 0] == launch:
            kernel = kernel_name(problem, int(launches[row, 2]), 40)
            words = f"{words} {kernel} of {names[int(launches[row, 1])]}"
        elif launch >= 0:
            # Of a graph that has finished there are the kernels in it.
            of = nodes[nodes[:, 0] == launch, 1]
            words = f"{words} a graph of {names[of[0]]}" if len(of) else words
        found.append((when_us, words))
    return found


def kernel_name(problem: Problem, identity: int, width: int) -> str:
    """A kernel's name without return type, namespaces and arguments, or a graph's; at most ``width`` long."""
    if identity >= len(problem.kernels):
        # Graphs' names are made up of plain words.
        name = problem.graphs[identity - len(problem.kernels)].name
    else:
        name = _short(problem.kernels[identity].kernel.name)
    return name if len(name) <= width else name[: width - 1] + "…"


@functools.lru_cache(maxsize=4096)
def _short(name: str) -> str:
    if name.startswith("_Z"):
        # Mangled: identifiers stand behind their lengths (literals behind a type's letter); the longest says most.
        found = re.finditer(r"(?<![\dbhijlmst])(\d+)(?=[A-Za-z_])", name)
        return max((name[m.end() : m.end() + int(m[1])] for m in found), key=len, default=name) or name
    words = re.split(r"[<(,>]", name.removeprefix("void "))
    short = words[0].rsplit("::", 1)[-1]
    if short.lower() == "kernel" and len(words) > 1:
        short = words[1].rsplit("::", 1)[-1]
    return short or name


def animate(
    episode: PlayedEpisode,
    path: Path,
    window_us: tuple[float, float] | None,
    frames: int,
    frames_per_s: float,
    title: str,
) -> Path:
    """Write the film that :meth:`~gpusched_env.episodes.session.Episode.animate` describes."""
    if episode.last is None:
        raise InputError("films show kernels, which were not recorded: run with record='blocks'")
    last_us = last_work_us(episode.timeline, episode.last)
    window_us = window_us or (0.0, last_us)
    shown = scene(episode.problem, episode.timeline, episode.last, title or episode.problem.scenario.name, window_us[0])
    return film(shown, path, Cut(window_us, last_us, episode.end_us, frames, frames_per_s))
