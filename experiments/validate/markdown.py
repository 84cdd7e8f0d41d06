"""The figures of a validation as a page of the documentation."""

from __future__ import annotations

from typing import Any

from gpusched_env.display.table import Table
from gpusched_env.experiments.validate.dataset import MODEL_PAIRS
from gpusched_env.experiments.validate.results import CALIBRATED_ON, TRANSFER, summary_line
from gpusched_env.experiments.validate.tables import EVERY_PAIR, WITHOUT_ONE, all_tables

INTRODUCTION = """\
# The simulator against an H100

Written by `gpusched validate DIR --gpu {gpu} --docs`. The recordings are streams of synthetic kernels that one GPU \
ran side by side: *pairs* (two kernels), *mixes* (2 to 8 streams) and *sequences* (many short kernels in a row), and \
*pairs of networks* as CUDA graphs on two streams. A prediction sees the kernels' shapes, their work, their profiles \
alone and the launches; measured times are read for the comparison only.

{summary}

## How to read the tables

- An *end* is the time from the release of all streams to a launch's last block. Its error is \
|predicted − measured| / measured; the tables give the median and the 90th and 95th percentile.
- A launch is *reproducible* if its ends in all repetitions lie within 5 % of its median end. The others depend on \
which block happened to finish first, and no deterministic prediction can be right about all repetitions.
- The *makespan* is the end of a scenario's last launch. The *rank correlation* (Spearman) compares the order of ends \
within a scenario; the table has the mean over scenarios.
- The *slowdown* of a network is its median turnaround beside the other over that alone, both simulated or both \
recorded. Times alone, which the graph gap was read off, cancel.

## What was calibrated on what

The costs of instructions were read off recordings of one kernel at a time; a scale on each synthetic kernel makes \
its solo duration come out. The constants of the sharing laws were scanned on the even-numbered pairs and mixes. The \
worst cases of both halves were looked at when the mechanisms were chosen, so the odd half is a test of the \
constants, not of the choice of mechanisms: it is no clean hold-out. Sequences were not scanned; the gap between \
kernels of a stream and the latency of a flag are medians over all recordings. Kernels of networks have no counters: \
the demands of their classes were chosen with all recorded pairs of networks in view, so there is no hold-out for \
them.

The H200 has the same constants (it is the same chip) and the bandwidth of its data sheet. It was not checked against \
a recording; `gpusched validate` allows its errors to be {transfer} times those of {calibrated}.
"""
ABLATION_NOTE = """\
The same reproducible ends and makespans with one mechanism switched off at a time; {sampled}pairs of networks are not \
run. *Carve-out*: every SM has all of its shared memory at all times. *Scale*: kernels take what their work says, not \
their solo duration. *Timer*: the kernel that releases the streams holds an SM.
"""
EVERY_PAIR_NOTE = """\
Slowdowns, predicted and measured. Of {count} recorded ones, {faster} are below 1: those networks were recorded faster \
beside the other than alone, which no law of sharing gives.
"""


def markdown_page(data: dict[str, Any]) -> str:
    """The page for :func:`~gpusched_env.experiments.validate.results.results_dict`."""
    about = {"gpu": data["gpu"], "transfer": TRANSFER, "calibrated": CALIBRATED_ON}
    parts = [INTRODUCTION.format(summary=f"`{summary_line(data)}`", **about)]
    for table in all_tables(data):
        parts.append(f"## {table.title}\n")
        note = table_note(table, data)
        if note:
            parts.append(note)
        parts.append(table.markdown())
    return "\n".join(parts)


def table_note(table: Table, data: dict[str, Any]) -> str:
    """What stands above a table; empty for most."""
    if table.title == WITHOUT_ONE:
        every = data["ablation"]["every"]
        sampled = "".join(f"of {name} every {n}th is run; " for name, n in every.items() if n > 1)
        return ABLATION_NOTE.format(sampled=sampled)
    if table.title == EVERY_PAIR:
        each = data[MODEL_PAIRS]["each"]
        faster = sum(pair[side]["measured"] < 1.0 for pair in each for side in ("foreground", "background"))
        return EVERY_PAIR_NOTE.format(count=2 * len(each), faster=faster)
    return ""
