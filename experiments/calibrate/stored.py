"""A calibration as data: JSON, and a fragment of a GPU's YAML file."""

from __future__ import annotations

import json
from datetime import date

import yaml

from gpusched_env import __version__
from gpusched_env.experiments.calibrate.fit import EFFICIENCY, INSTRUCTIONS
from gpusched_env.experiments.calibrate.report import TOLERANCE, Calibration


def as_json(result: Calibration) -> str:
    """Machine-readable: the same figures."""
    data = {
        "schema": 1,
        "name": "calibrate",
        "version": __version__,
        "gpu": result.gpu,
        "holds": result.holds,
        "tolerance": TOLERANCE,
        "rows": result.rows,
        "generic_start": result.generic,
        "at_bound": list(result.bounded),
        "constants": {
            line.name.replace(" ", "_"): {
                "start": line.start,
                "value": line.value,
                "unit": line.unit,
                "standard_error": line.error,
            }
            for line in result.constants
        },
        "residuals": [
            {
                "kind": line.kind,
                "block": line.block,
                "n": line.n,
                "before": dict(zip(("median", "p90"), line.before, strict=True)),
                "after": dict(zip(("median", "p90"), line.after, strict=True)),
            }
            for line in result.residuals
        ],
    }
    return json.dumps(data, indent=1) + "\n"


def as_yaml(result: Calibration, day: date) -> str:
    """The fragment of a GPU's YAML file that the fit decides, with a note of where it comes from.

    All keys but ``fitted`` are those of :class:`~gpusched_env.hardware.specs.GpuSpec`.
    """
    by_name = {line.name: line for line in result.constants}
    overall = result.residuals[0]

    def rounded(value: float) -> float:
        return float(f"{value:.4g}")

    costs = {name: rounded(by_name[name].value) for name in INSTRUCTIONS}
    fragment = {
        "instructions": {**costs, "load_wait_us": result.load_wait_us},
        "contention": {EFFICIENCY: rounded(by_name[EFFICIENCY].value)},
        "timing": {"event_latency_us": rounded(by_name["event_latency_us"].value)},
        "fitted": {
            "gpu": result.gpu,
            "date": day.isoformat(),
            "folder": result.folder,
            "rows": result.rows,
            "block_gap_us": rounded(by_name["block gap"].value),
            "not_fitted": ["load_wait_us"],
            "standard_errors": {
                line.name.replace(" ", "_"): None if line.error is None else float(f"{line.error:.2g}")
                for line in result.constants
            },
            "residuals": {
                when: {"median": round(pair[0], 4), "p90": round(pair[1], 4)}
                for when, pair in (("before", overall.before), ("after", overall.after))
            },
        },
    }
    head = "# Written by `gpusched calibrate`: the first three keys go into hardware/gpus/ as they are.\n"
    return head + yaml.safe_dump(fragment, sort_keys=False)
