"""The state of an environment as text (``render_mode="ansi"``)."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.display.scene import Counts
from gpusched_env.display.words import time_text
from gpusched_env.envs.observations import select
from gpusched_env.episodes.scenes import kernel_name, scene
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Timeline
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
    heads_of = ["tenant", "prio", *Counts._fields, "pending", "launched", "slowdown", "next kernel"]
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
