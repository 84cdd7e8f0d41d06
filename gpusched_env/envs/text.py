"""The state of an environment as text (``render_mode="ansi"``)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from gpusched_env.envs.observations import select
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.view import RunningColumn, Table, View

BAR = 24
"""Characters of the bar of busy SMs."""
KERNELS = 12
"""Launched kernels listed at most."""


def text(problem: Problem, view: View) -> str:
    """A table of tenants, the launched kernels and a bar of busy SMs; lines end in newlines."""
    names = [program.tenant.name for program in problem.programs]
    full = round(BAR * view.busy_sms / view.sms)
    lines = [
        f"{problem.scenario.name} on {problem.gpu.name}   {time_text(view.time_us)} of {time_text(view.horizon_us)}",
        f"SMs [{'#' * full}{'.' * (BAR - full)}] {view.busy_sms}/{view.sms} busy   "
        f"occupancy {view.occupancy:.0%}   DRAM {view.dram:.0%}",
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
            f"{table.jobs_waiting[i]:.0f}",
            f"{table.jobs_done[i]:.0f}",
            f"{table.kernels_pending[i]:.0f}",
            f"{table.kernels_launched[i]:.0f}",
            f"{table.mean_turnaround_us[i] / table.alone_us[i]:.2f}" if table.mean_turnaround_us[i] > 0 else "-",
            kernel_name(problem, heads[i], 32) if i in heads else "-",
        ]
        for i in range(len(table))
    ]
    lines += _align(
        ["tenant", "prio", "jobs", "done", "pending", "launched", "slowdown", "next kernel"], rows, left=(0, 7)
    )
    lines.append("")
    running = Table(select(view, len(table), min(len(view.running), KERNELS)).running, RunningColumn)
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


def time_text(us: float) -> str:
    """A simulated time with a fitting unit."""
    if us == math.inf:
        return "no limit"
    return f"{us / 1e3:.3f} ms" if us >= 1e3 else f"{us:.1f} µs"


def kernel_name(problem: Problem, identity: int, width: int) -> str:
    """A kernel's name without return type, namespaces and arguments, or a graph's; at most ``width`` long."""
    if identity >= len(problem.kernels):
        # Graphs' names are made up of plain words.
        name = problem.graphs[identity - len(problem.kernels)].name
        return name if len(name) <= width else name[: width - 1] + "…"
    name = problem.kernels[identity].kernel.name
    if name.startswith("_Z"):
        # Mangled: identifiers stand behind their lengths (literals behind a type's letter); the longest says most.
        found = re.finditer(r"(?<![\dbhijlmst])(\d+)(?=[A-Za-z_])", name)
        short = max((name[m.end() : m.end() + int(m[1])] for m in found), key=len, default=name)
    else:
        words = re.split(r"[<(,>]", name.removeprefix("void "))
        short = words[0].rsplit("::", 1)[-1]
        if short.lower() == "kernel" and len(words) > 1:
            short = words[1].rsplit("::", 1)[-1]
    short = short or name
    return short if len(short) <= width else short[: width - 1] + "…"


def _align(header: list[str], rows: list[list[str]], left: Sequence[int]) -> list[str]:
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
    return [
        "  ".join(
            cell.ljust(w) if c in left else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    ]
