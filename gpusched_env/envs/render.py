"""Rendering in the three modes of the environment; Pillow and Matplotlib are loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.scene import JobCounts
from gpusched_env.display.words import time_text
from gpusched_env.envs.observations import select
from gpusched_env.episodes.charts import kernel_name, last_work_us, scene, window_us
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import RunningColumn, View, ViewTable

BAR = 24
"""Characters of the bar of busy SMs."""
KERNELS = 12
"""Launched kernels listed at most."""


def text(problem: Problem, view: View, timeline: Timeline) -> str:
    """The last command, a bar of busy SMs, tables of tenants and of launched kernels; lines end in newlines."""
    shown = scene(problem, timeline, view, problem.scenario.name, view.time_us)
    names = [program.tenant.name for program in problem.programs]
    full = round(BAR * view.busy_sms / view.sms)
    lines = [
        f"{problem.scenario.name} on {problem.gpu.name}   {time_text(view.time_us)} of {time_text(view.horizon_us)}",
        f"SMs [{'#' * full}{'.' * (BAR - full)}] {view.busy_sms}/{view.sms} busy   "
        f"occupancy {view.occupancy:.0%}   DRAM {view.dram:.0%}",
        f"last command: {shown.command(view.time_us) or '-'}",
        "",
    ]
    heads = {
        int(row[0]): int(row[1]) for row in zip(view.pending.tenant[::-1], view.pending.identity[::-1], strict=True)
    }
    table = view.tenants
    rows: list[list[str]] = [
        [
            names[i],
            f"{table.priority[i]:.0f}",
            *map(str, shown.counts(i, view.time_us)),
            f"{table.kernels_pending[i]:.0f}",
            f"{table.kernels_launched[i]:.0f}",
            f"{table.mean_turnaround_us[i] / table.alone_us[i]:.2f}" if table.mean_turnaround_us[i] > 0 else "-",
            kernel_name(problem, heads[i], 32) if i in heads else "-",
        ]
        for i in range(len(table))
    ]
    heads_of = ["tenant", "prio", *JobCounts._fields, "pending", "launched", "slowdown", "next kernel"]
    lines += _align(heads_of, rows, left=(0, len(heads_of) - 1))
    lines.append("")
    running = ViewTable(select(view, len(table), min(len(view.running), KERNELS)).running, RunningColumn)
    rows = [
        [
            f"{running.id[i]:.0f}",
            names[int(running.tenant[i])],
            kernel_name(problem, int(running.identity[i]), 32),
            f"{running.stream_priority[i]:.0f}",
            f"{running.elapsed_us[i]:.1f}/{running.profiled_us[i]:.1f}" if running.started[i] else "queued",
            f"{running.blocks_resident[i]:.0f}+{running.blocks_waiting[i]:.0f}/{running.blocks[i]:.0f}",
            "preempting" if running.preempting[i] else "",
        ]
        for i in range(len(running))
    ]
    if rows:
        header = ["id", "tenant", "launched kernel", "stream", "us run/alone", "blocks on+waiting/all", ""]
        lines += _align(header, rows, left=(1, 2, 6))
        if len(view.running) > len(rows):
            lines.append(f"and {len(view.running) - len(rows)} more")
    else:
        lines.append("no kernel is launched")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _align(header: list[str], rows: list[list[str]], left: Sequence[int]) -> list[str]:
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
    return [
        "  ".join(
            cell.ljust(w) if c in left else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    ]


RenderMode = Literal["human", "rgb_array", "ansi"]


def detail_of(mode: RenderMode | None) -> Detail:
    """What a timeline has to keep to be drawn in a mode."""
    return "jobs" if mode is None else "kernels" if mode == "ansi" else "blocks"


class Renderer:
    """Draws states in one mode and keeps the window of mode ``human``."""

    def __init__(self, mode: RenderMode) -> None:
        self._mode = mode
        self._screen: Screen | None = None

    def draw(self, problem: Problem, timeline: Timeline, view: View, *, over: bool) -> str | NDArray[np.uint8] | None:
        """The text of mode ``ansi``, the picture of ``rgb_array``; ``human`` shows it and returns nothing.

        ``over``: the episode has ended; then the picture is that of the last moment of work.
        """
        if self._mode == "ansi":
            return text(problem, view, timeline)
        image = frame(problem, timeline, view, over=over)
        if self._mode == "rgb_array":
            return image
        if self._screen is None:
            self._screen = open_screen()
        self._screen.show(image, lambda: text(problem, view, timeline))
        return None

    def close(self) -> None:
        """Close the window, if there is one; may be called again."""
        if self._screen is not None:
            self._screen.close()
            self._screen = None


def frame(problem: Problem, timeline: Timeline, view: View, *, over: bool) -> NDArray[np.uint8]:
    """The present as a picture: uint8 of shape ``(height, width, 3)``, of one size throughout an episode."""
    from gpusched_env.display.picture import picture

    span_us, now_us = window_us(problem), last_work_us(timeline, view) if over else view.time_us
    start_us = max(0.0, now_us - 0.96 * span_us)
    shown = scene(problem, timeline, view, problem.scenario.name, start_us)
    return picture(shown, now_us, (start_us, start_us + span_us), view.time_us)


class Screen(Protocol):
    """A screen that ``human`` rendering goes to."""

    def show(self, image: NDArray[np.uint8], words: Callable[[], str]) -> None:
        """Show the picture, or the words where there are no pictures."""

    def close(self) -> None:
        """Give the window back."""


def open_screen() -> Screen:
    """A Matplotlib window; without Matplotlib, a display or a backend with windows, standard output."""
    try:
        import matplotlib
        from matplotlib import pyplot
        from matplotlib.backends import registry
    except ImportError:
        return _Terminal()
    untyped: Any = registry
    with_windows = untyped.backend_registry.list_builtin(untyped.BackendFilter.INTERACTIVE)
    if matplotlib.get_backend().lower() not in with_windows:
        return _Terminal()
    return _Window(pyplot)


class _Terminal:
    def show(self, image: NDArray[np.uint8], words: Callable[[], str]) -> None:
        print(words(), flush=True)

    def close(self) -> None:
        """Nothing to give back."""


class _Window:
    def __init__(self, pyplot: Any) -> None:
        self._pyplot = pyplot
        self._figure: Any = None
        self._image: Any = None

    def show(self, image: NDArray[np.uint8], words: Callable[[], str]) -> None:
        if self._figure is None:
            height, width = image.shape[:2]
            self._figure = self._pyplot.figure("gpusched_env", figsize=(width / 100, height / 100), dpi=100)
            axes = self._figure.add_axes((0, 0, 1, 1))
            axes.set_axis_off()
            self._image = axes.imshow(image)
            self._figure.show()
        self._image.set_data(image)
        self._figure.canvas.draw_idle()
        self._figure.canvas.flush_events()

    def close(self) -> None:
        if self._figure is not None:
            self._pyplot.close(self._figure)
            self._figure = None
