"""Folders of trainings that never ran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.agents.training.config import config_of
from gpusched_env.agents.training.folder import CurveEntry, LearningCurve, write_config
from gpusched_env.scenarios.scenario import load_scenario

BASELINES = {"fifo": 1.83, "sjf": 1.14}


def training(
    folder: Path,
    costs: Sequence[float],
    *,
    baselines: dict[str, float] = BASELINES,
    version: str = "1.0",
    made: dict[str, Any] | None = None,
    **settings: Any,
) -> Path:
    """One on ``Toy``, validated every 1000 decisions on two episodes."""
    folder.mkdir(parents=True)
    config = config_of({"scenario": load_scenario("Toy"), **settings})
    command = f"gpusched train Toy --seed {config.seed} --out runs/{folder.name}"
    noted = {"command": command, "versions": {"gpusched-env": version}, "made": made or {}}
    write_config(config, noted, folder / "config.yaml")
    points = [
        CurveEntry(timesteps=1000 * k, cost=cost, costs=[cost, cost], best=cost <= min(costs[: k + 1]))
        for k, cost in enumerate(costs)
    ]
    curve = LearningCurve(seeds=[10, 11], baselines=baselines, validations=points)
    (folder / "validation.json").write_bytes(msgspec.json.encode(curve))
    return folder
