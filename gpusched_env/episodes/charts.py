"""Charts of one episode: its kernels along time, how full the GPU was, and how long jobs took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.display import palette
from gpusched_env.display.kinds import Kinds
from gpusched_env.display.palette import Look, tenant
from gpusched_env.display.plots import Bars, Panel, Series, areas, curves, timeline
from gpusched_env.display.points import binned_mean, distribution
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Timeline

if TYPE_CHECKING:
    from gpusched_env.display.plots import Figure
    from gpusched_env.episodes.played import PlayedEpisode

BINS = 300
BUSY, TRAFFIC = Look(palette.GREY), Look(palette.TRAFFIC)
"""Of SMs and of DRAM traffic: no tenant's colours."""
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
