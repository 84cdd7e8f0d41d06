"""What a device is asked about commands besides hosts and jobs, by access functions; compiled code reads its own memory
instead (devices.compiled.commands)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload.host import rules


@procedure
def is_offered(w: Any, code: int) -> Any:
    """Whether the scenario offers a command; ``rules(w).offered`` has a bit for each code."""
    return (rules(w).offered >> code) & 1 == 1


def any_tenant(may: Callable[..., Any]) -> Callable[..., Any]:
    """A procedure ``(w)``: whether ``may(w, tenant)`` is so for some tenant."""

    @procedure
    def anywhere(w: Any) -> Any:
        for tenant in range(rules(w).tenants):  # noqa: SIM110 (Numba has no any() over generators)
            if may(w, tenant):
                return True
        return False

    return anywhere


def legality_column(may: Callable[..., Any], column: int) -> Callable[..., Any]:
    """A procedure ``(w, tenant, row, offered)`` that writes into a column whether ``may(w, tenant)`` is so."""

    @procedure
    def show(w: Any, tenant: int, row: Any, offered: bool) -> None:
        row[column] = 1.0 if may(w, tenant) else 0.0

    return show


def any_launchable(w: Any) -> Any:
    """Whether a pending launch may be launched now."""
    return any(map(w.queues.launchable, w.queues.pending.values()))


def any_preemptible(w: Any) -> Any:
    """Whether a launched kernel may be preempted now."""
    return w.launches.any_preemptible


def on_gpu(w: Any, launch: Any) -> Any:
    """Whether a launch is a kernel, no node of a graph, that has started and has blocks to run or to end."""
    return launch.started_ps < NEVER and launch.grid is not None


def preemption_of(w: Any, launch: Any) -> Any:
    """Fields of a launch on the GPU: ``preempting`` (0 or 1), and when that was last commanded (``preempted_ps``)."""
    return launch


def any_synchronisable(w: Any) -> Any:
    """Whether the tiles of a pending launch may be synchronised with its producer's now."""
    return any(map(w.queues.synchronisable, w.queues.pending.values()))


def any_reshapable(w: Any) -> Any:
    """Whether a pending launch may be given another form now."""
    return any(map(w.queues.forms, w.queues.pending.values()))
