"""How much better than its rivals the simulator predicts: errors side by side, and skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.data import recorded_names
from gpusched_env.experiments.lib.graph_pairs import GraphPair
from gpusched_env.experiments.validate.recordings import MODEL_PAIRS, ModelSolo, Recordings, find, read_rows
from gpusched_env.experiments.validate.rivals import SIDES, constants, shares
from gpusched_env.experiments.validate.scoring import spread
from gpusched_env.scenarios.building import load_workload

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

SHIPPED = (
    "h100",
    "h100/unseen_networks",
    "h200",
    "h200/drawn_networks",
    "h200/drawn_20261128",
    "h200/drawn_20261129",
    "h200/drawn_20261130",
)
"""Folders of shipped measurements that may have pairs of networks."""


def of_launches(launches: DataFrame) -> dict[str, Any]:
    """Errors of the ends of a set's launches, see :func:`compared`.

    The constant is the median stretch of a launch of the same urgency over its time alone, from the start of its
    stream.
    """
    alone_us = launches.alone_us - launches.ready_us
    stretch = (launches.measured_us - launches.ready_us) / alone_us
    constant = stretch.groupby(launches.priority < 0).transform("median")
    rival_us = {"constant": launches.ready_us + constant * alone_us, "shares": launches.shared_us}
    errors = {name: (us / launches.measured_us - 1.0).to_numpy() for name, us in rival_us.items()}
    return compared(launches.error.to_numpy(), errors)


def of_networks(
    pairs: Sequence[tuple[GraphPair, tuple[float, float]]], recordings: Recordings, sms: int
) -> dict[str, dict[str, Any]]:
    """Errors of slowdowns, see :func:`compared`, of either side."""
    recorded = np.array([pair.recorded for pair, _ in pairs])
    own = [pair for pair, _ in pairs]
    names = {name for pair in own for name in (pair.fg, pair.bg)}
    workloads = {name: recordings.workloads.get(name) or load_workload(name) for name in names}
    predicted = {
        "simulator": [found for _, found in pairs],
        "constant": constants(own),
        "shares": shares(own, workloads, sms),
    }
    errors = {name: np.array(of) / recorded - 1.0 for name, of in predicted.items()}
    simulated = errors.pop("simulator")
    return {
        side: compared(simulated[:, column], {name: of[:, column] for name, of in errors.items()})
        for column, side in enumerate(SIDES)
    }


def compared(simulator: NDArray[np.float64], rivals: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Median and high percentiles of the absolute errors by predictor, and as ``skill`` what the simulator's median
    error is below the rival's (1: it is exact; 0: no better; below 0: worse)."""
    found: dict[str, Any] = {"n": len(simulator), "simulator": spread(simulator)}
    for name, errors in rivals.items():
        of = spread(errors)
        assert of is not None
        found[name] = {**of, "skill": 1.0 - found["simulator"]["median"] / of["median"] if of["median"] else None}
    return found


def networks_elsewhere(folder: Path) -> set[str]:
    """Networks that were at hand without the recordings of ``folder``: shipped workloads, and those of other shipped
    pairs."""
    found = set(recorded_names())
    for name in SHIPPED:
        with resources.as_file(resources.files("gpusched_env.data") / "measurements" / name) as shipped:
            path = find(shipped, MODEL_PAIRS)
            if path is None or shipped.resolve() == folder.resolve():
                continue
            rows: list[ModelSolo | GraphPair] = read_rows(path, ModelSolo | GraphPair)  # type: ignore[arg-type]
            found |= {name for row in rows if isinstance(row, GraphPair) for name in (row.fg, row.bg)}
    return found
