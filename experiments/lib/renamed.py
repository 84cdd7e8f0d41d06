"""Commands of ``gpusched`` that have another name now: the old one works for one release, and says the new one."""

from __future__ import annotations

from typing import Final

_LAB: Final = (
    *("rank", "curves", "ship", "record", "validate", "carry-over", "calibrate", "interference", "fuzz", "bench"),
    *("cache", "mig-slice", "fleet", "cluster", "cluster-queue", "train-cluster-queue", "drawn-tune"),
)
RENAMED: Final = {
    **{name: f"lab {name}" for name in _LAB},
    **{name: f"list {name}" for name in ("scenarios", "schedulers", "gpus", "workloads")},
    **{f"import-{form}": f"import {form}" for form in ("trace", "steps", "kernels")},
    **{f"{page}-page": f"lab page {page}" for page in ("headroom", "live", "drawn")},
    "rank-page": "lab page rankings",
    "results": "lab page results",
    "rank-replay": "lab replay",
    "sweep": "lab search",
}
"""New names by old ones."""


def now_called(command: str) -> str:
    """A command (``gpusched rank-page ...``) by the name that it has now."""
    program, _, rest = command.partition(" ")
    name, space, arguments = rest.partition(" ")
    return f"{program} {RENAMED.get(name, name)}{space}{arguments}"
