"""The films of the documentation: ``python -m gpusched_env.experiments.pictures docs/pictures``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpusched_env.experiments.api import run_episode
from gpusched_env.scenarios.scenario import scenario_names


@dataclass(frozen=True, slots=True)
class Shot:
    """What is filmed of a scenario."""

    scheduler: str
    until_ms: float
    """From the start of the episode."""
    frames: int = 50


GPU = "gpu"
"""The film on top of the README."""
LONG = Shot("orion", 10.0, 110)
"""It shows :data:`FIRST` for longer."""
FIRST = "InferenceBesideTraining"
SERVING = Shot("moore", 20.0)
BESIDE = Shot("orion", 10.0)
SHOTS = {
    **{name: BESIDE for name in scenario_names() if name.startswith(FIRST)},
    **{name: SERVING for name in scenario_names() if name.startswith("Serving")},
    "KernelGraph": Shot("earliest-start", 1.4),
    "MultiTenantBurst": Shot("llf", 20.0),
    "MultiTenantSaturated": Shot("orion", 20.0),
    "PreemptiveServing": Shot("preemptive-priority", 20.0),
    "PriorityFill": Shot("fikit", 40.0),
    "ThreeTenants": Shot("orion", 20.0),
    "Toy": Shot("sjf", 0.52),
}
"""By scenario."""


def shoot(name: str, shot: Shot, path: Path) -> None:
    """Play the scenario and write its film."""
    until_us = shot.until_ms * 1e3
    episode = run_episode(name, shot.scheduler, seed=1, record="blocks", horizon_us=until_us)
    title = f"{name}, scheduled by {shot.scheduler}"
    episode.animate(path, window_us=(0.0, until_us), frames=shot.frames, frames_per_s=8.0, title=title)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} KB", flush=True)


def main(folder: Path, names: Sequence[str]) -> None:
    """Write the films of these scenarios, or all and the README's."""
    for name in names or SHOTS:
        shoot(name, SHOTS[name], folder / f"{name}.gif")
    if not names or GPU in names:
        shoot(FIRST, LONG, folder / f"{GPU}.gif")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m gpusched_env.experiments.pictures FOLDER [SCENARIO...]")
    main(Path(sys.argv[1]), sys.argv[2:])
