"""A recording of a cluster: when each pod came, and for how long it ran."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.importing import POD_COLUMNS, pod_of, table_of_rows, whole_field
from gpusched_env.games.fleet.cluster.problem import MOST_PODS, PodKind, Workload

TIME_COLUMNS: Final = ("creation_time", "scheduled_time", "deletion_time")
MOST_S: Final = 10**10
"""Largest time: three centuries, so that seconds since 1970 are there too."""
DAY_S: Final = 86_400


@dataclass(frozen=True)
class LifetimeRecording:
    """Pods in order of creation."""

    workload: Workload
    created_s: NDArray[np.int64]
    """(pods,) when a pod was created."""
    runs_s: NDArray[np.int64]
    """(pods,) how long it ran, at least 1."""
    span_s: tuple[int, int]
    """From and to when it was recorded, to not included."""

    def block(self, first_s: int, last_s: int) -> LifetimeRecording:
        """The pods that were created from ``first_s`` to before ``last_s``.

        Raises:
            InputError: there are none.
        """
        low, high = np.searchsorted(self.created_s, (first_s, last_s))
        if low == high:
            raise InputError(f"{self.workload.name}: no pod was created from second {first_s} to second {last_s}")
        pods = [self.workload.kinds[kind] for kind in self.workload.submitted[low:high]]
        workload = Workload.of_pods(f"{self.workload.name}, from day {first_s / DAY_S:g}", pods)
        return replace(
            self,
            workload=workload,
            created_s=self.created_s[low:high],
            runs_s=self.runs_s[low:high],
            span_s=(first_s, last_s),
        )


def read_recording(path: Path, name: str | None = None) -> LifetimeRecording:
    """The recording of a file: a table of pods, also gzipped, with times in whole seconds besides.

    Columns are ``cpu_milli, memory_mib, num_gpu, gpu_milli[, gpu_spec], creation_time, scheduled_time, deletion_time``.
    A pod runs from when it was scheduled until it is deleted. One that was never scheduled (an empty field) is left
    out: nobody knows how long it would have run.

    Args:
        path: of the file.
        name: of the workload; none: the file's.

    Raises:
        InputError: it cannot be read, or a line of it is broken; names file, line and field.
    """
    found: list[tuple[int, int, PodKind]] = []
    for where, row in table_of_rows(path, (*POD_COLUMNS, *TIME_COLUMNS)):
        kind = pod_of(where, row)
        created_s = whole_field(where, row, "creation_time", MOST_S)
        # Some tables have whole numbers as 12.0.
        times = {column: row[column].strip().removesuffix(".0") for column in TIME_COLUMNS}
        if not times["scheduled_time"]:
            continue
        began_s, ended_s = (whole_field(where, times, column, MOST_S) for column in TIME_COLUMNS[1:])
        if not created_s <= began_s <= ended_s:
            raise InputError(
                f"{where}: created at {created_s}, scheduled at {began_s}, deleted at {ended_s}; must be in this order"
            )
        if len(found) == MOST_PODS:
            raise InputError(f"{where}: more than {MOST_PODS} pods")
        found.append((created_s, max(1, ended_s - began_s), kind))
    if not found:
        raise InputError(f"{path}: no pod that was scheduled, at least one must be there")
    found.sort(key=lambda one: one[0])
    workload = Workload.of_pods(name or path.name.partition(".")[0], [kind for _, _, kind in found])
    created, runs = (np.array([one[column] for one in found], np.int64) for column in (0, 1))
    return LifetimeRecording(workload, created, runs, (found[0][0], found[-1][0] + 1))
