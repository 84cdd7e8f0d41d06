"""The page of the interface: what a scheduler sees and may command, from the docstrings of the contract."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from typing import Any, Final

from gpusched_env.experiments.reference.docstrings import attribute_docstrings, literals, markdown, pipe_table
from gpusched_env.experiments.reference.interface_texts import COMMAND_TIMES, DECIDE, HEAD, KNOWLEDGE, LEGAL, SOURCES
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.demand import JobDemand
from gpusched_env.scenarios.knowledge import KernelKnowledge, Knowledge, StreamKnowledge, TenantKnowledge
from gpusched_env.scheduling.commands import COMMANDS, Command, Partition, TilePolicy
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.scheduling.reads import PARTS
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
)

TABLES: Final[dict[str, type[enum.IntEnum]]] = {
    "pending": PendingColumn,
    "running": RunningColumn,
    "tenants": TenantColumn,
    "jobs": JobColumn,
    "dependencies": DependencyColumn,
    "cores": CoreColumn,
}
"""Tables of a view, by field."""
GPUS: Final = ("h100-sxm", "a100-sxm", "rtx-3090")
"""Whose times the page shows."""
TIMES: Final = ("launch_latency_us", "event_latency_us", "partition_change_us", "drain_ack_us", "reset_us")

_UNITS: Final = (
    (r"JOBS_A_US", "jobs/us"),
    (r".*_US", "us"),
    (r"ID|PARENT|PRODUCER|LAUNCH|WAITS_FOR", "launch id"),
    (r"TENANT|IDENTITY|STREAM", "row"),
    (r"PROFILED_(ISSUE|DRAM)|UNFINISHED", "share"),
    (r"JOB|.*_REJECTABLE", "job number"),
    (r"PREEMPTED|STARTED|PREEMPTING|IDEMPOTENT|.*(ABLE|IBLE)", "0 or 1"),
    (r"(STREAM_)?PRIORITY", "priority"),
    (r"WEIGHT", "weight"),
    (r"NUMBER", "core"),
    (r"HOST", "row"),
    (r"TASKS", "processes"),
    (r"LOCKED|ALWAYS|THROTTLED", "0 or 1"),
    (r"BUDGET|(LAST_|ALL_)?MISSES", "misses"),
    (r"PARTITION_FIRST", "SM"),
    (r"(PARTITION_)?SMS", "SMs"),
    (r"BLOCKS(_WAITING|_RESIDENT)?|BLOCKS_PER_SM|FORM\d_PER_SM", "blocks"),
    (r"THREADS", "threads"),
    (r"NODES|KERNELS_(PENDING|LAUNCHED)", "kernels"),
    (r"JOBS_(WAITING|DONE)", "jobs"),
    (r"UPSTREAM|DEPENDENTS", "launches"),
    (r"NEEDS|POLICY|POSTS", "code"),
    (r"FORMS", "forms"),
    (r"FOLD|(FORM\d_)?(ROWS|COLUMNS|SLICES)", "tiles"),
    (r"STEPS", "steps"),
)
"""By pattern of a column's name."""


def unit(column: enum.IntEnum) -> str:
    """The unit of a column of a view.

    Raises:
        LookupError: none is known for a column of that name.
    """
    for pattern, found in _UNITS:
        if re.fullmatch(pattern, column.name):
            return found
    raise LookupError(f"{type(column).__name__}.{column.name} has no unit; add it to _UNITS")


def words(column: enum.IntEnum) -> list[str]:
    """The parts of what is known (:mod:`gpusched_env.scheduling.reads`) that a column belongs to."""
    return [word for word, part in PARTS.items() if any(column is one for one in part.columns)]


def source(table: str, column: enum.IntEnum) -> str:
    """Where a scheduler on a real host would have the column from."""
    found = words(column) or [word for word in ("requests", "completions", "dependencies") if word in _OF_TABLE[table]]
    return ", ".join(dict.fromkeys(SOURCES[word] for word in found)) or SOURCES["open"]


_OF_TABLE: Final = {
    "pending": (),
    "tenants": (),
    "running": ("completions",),
    "jobs": ("requests",),
    "dependencies": ("dependencies",),
    "cores": (),
}


def _columns(table: str, columns: type[enum.IntEnum]) -> list[str]:
    meanings = attribute_docstrings(columns)
    rows = [
        [f"`{column.name.lower()}`", literals(meanings[column.name]), unit(column), source(table, column)]
        for column in columns
    ]
    about = markdown(inspect.getdoc(columns) or "")
    return [
        f"### `view.{table}`", "", about, "", *pipe_table(["column", "meaning", "unit", "source"], rows), "",
    ]  # fmt: skip


def _fields(owner: type[Any], prefix: str = "") -> list[str]:
    """Fields of a dataclass with what their docstrings say."""
    meanings = attribute_docstrings(owner)
    rows = []
    for field in dataclasses.fields(owner):
        types = re.sub(r"\b(\w+\.)+", "", str(inspect.get_annotations(owner)[field.name]))
        rows.append([f"`{prefix}{field.name}`", f"`{types}`", literals(meanings.get(field.name, ""))])
    return [*pipe_table(["field", "type", "meaning"], rows), ""]


def _parts(command: type[Command]) -> tuple[str, str, str]:
    """What the docstring of a command says: what it does, when it is legal, and what it costs."""
    about, legal, cost = re.split(r"\n\n(?:Legal|Cost): ", inspect.getdoc(command) or "")
    return markdown(about), " ".join(literals(legal).split()), " ".join(literals(cost).split())


def _commands() -> list[str]:
    lines = ["## Commands", "", LEGAL, ""]
    for command in COMMANDS:
        about, legal, cost = _parts(command)
        lines += [f"### `{command.__name__}`", "", about, "", *_fields(command)]
        lines += [f"*Legal*: {legal}", "", f"*Cost*: {cost}", ""]
    gpus = [load_gpu(name) for name in GPUS]
    rows = [[f"`{time}`", *(f"{getattr(gpu.timing, time):g}" for gpu in gpus)] for time in TIMES]
    for part in (Partition, TilePolicy):
        lines += [f"### `{part.__name__}`", "", markdown(inspect.getdoc(part) or ""), "", *_fields(part)]
    lines += ["### Times of GPUs", "", COMMAND_TIMES, ""]
    return [*lines, *pipe_table(["us", *(f"`{name}`" for name in GPUS)], rows), ""]


def document() -> str:
    """The page, as Markdown."""
    lines = [HEAD, "## When `decide` is called", "", DECIDE, "", "## What a view has", ""]
    lines += [*_fields(View, "view."), SOURCES["about"], ""]
    for table, columns in TABLES.items():
        lines += _columns(table, columns)
    lines += ["## What is known beforehand", "", KNOWLEDGE, ""]
    for owner in (Knowledge, TenantKnowledge, JobDemand, KernelKnowledge, StreamKnowledge):
        lines += [f"### `{owner.__name__}`", "", markdown(inspect.getdoc(owner) or ""), "", *_fields(owner)]
    return "\n".join([*lines, *_commands()])
