"""Loops of one operator beside networks, as an H200 ran them: what even waves are worth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.experiments.lib.recorded import graph_cells
from gpusched_env.experiments.lib.verdicts import run_cells
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.experiments.record.steps import OPERATORS
from gpusched_env.experiments.validate.recordings import read_recordings
from gpusched_env.experiments.validate.tables import in_full_waves
from gpusched_env.workload.workload import Workload

RECORDING = Path("gpusched_env/data/measurements/h200/operators")
"""Of the checkout."""
FRONT = "bert_infer_b1_s128"
"""Whose matrix kernels need an SM each to themselves."""


@pytest.mark.long
def test_backgrounds_of_one_operator_are_predicted_better_with_even_waves() -> None:
    """Median errors of their slowdowns beside one of the networks, in both modes."""
    recordings = read_recordings(RECORDING)
    assert recordings.model_pairs is not None
    pairs = [pair for pair in recordings.model_pairs if pair.fg == FRONT]
    assert {pair.bg for pair in pairs} == {f"{name}_op" for name in OPERATORS}

    def error(workloads: Mapping[str, Workload]) -> float:
        on = {"gpu": "h200-sxm", "own": Shared(workloads)}
        found = run_cells(list(graph_cells(pairs, **on)), workers=1)
        return float(np.median([abs(pair.simulated(found, **on)[1] / pair.recorded[1] - 1.0) for pair in pairs]))

    full = in_full_waves(recordings.workloads)
    assert full is not None
    assert error(recordings.workloads) < 0.6 * error(full)
