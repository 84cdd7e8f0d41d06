"""What a device is asked about commands besides hosts and jobs, by access functions; compiled code reads its own memory
instead (devices.compiled.commanding)."""

from __future__ import annotations

from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.workload.host import rules


@procedure
def offers(w: Any, code: int) -> Any:
    """Whether the scenario offers a command; ``rules(w).offered`` has a bit for each code."""
    return (rules(w).offered >> code) & 1 == 1


def any_launchable(w: Any) -> Any:
    """Whether a pending launch may be launched now."""
    return w.launches.any_launchable


def any_preemptible(w: Any) -> Any:
    """Whether a launched kernel may be preempted now."""
    return w.launches.any_preemptible


def any_synchronisable(w: Any) -> Any:
    """Whether the tiles of a pending launch may be synchronised with its producer's now."""
    return w.launches.any_synchronisable


def any_reshapable(w: Any) -> Any:
    """Whether a pending launch may be given another form now."""
    return w.launches.any_reshapable
