"""Fits the law of products (:mod:`gpusched_env.hardware.solo`) to single products that were measured.

Run it with ``python -m gpusched_env.experiments.calibrate.products``; it writes ``data/calibration/products.json``. The
rows are the products of cuSync's MLPs, one after the other under StreamSync. The mean of the relative errors is made
small, of which none counts more than 30 %: a few rows have other reasons.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpusched_env.data.dependent_kernels import DEPTHS, fitting, published
from gpusched_env.hardware.solo import Product, ProductCosts, product_us
from gpusched_env.hardware.specs import load_gpu

GPUS: Final = {"v100": "v100-sxm", "a100": "a100-sxm"}
FIRST: Final = ProductCosts(20.0, 9e-7, 2e-6, 6e-5, 2.7e-6, 1.0)
"""The costs at which the search begins."""
ROUNDS, STARTS, MOST_ERROR = 8000, 8, 0.3
WHERE: Final = Path(str(resources.files("gpusched_env.data"))) / "calibration" / "products.json"


def measured(card: str) -> list[tuple[Product, float]]:
    """Products of a GPU, and their microseconds."""
    found = []
    for name, rows in published()["mlp"].items():
        model, of, *other = name.split("_")
        if of != card or other:
            continue
        for row in rows.values():
            for us, (tall, wide, slices), tile, depth in zip(
                row["gemms"], row["grids"], row["tiles"], DEPTHS[model], strict=True
            ):
                high, broad = tile
                product = Product(high, broad, tall, wide, slices, depth / slices, fitting(card, (high, broad)))
                found.append((product, us))
    return found


def errors(costs: ProductCosts, rows: list[tuple[Product, float]], sms: int) -> list[float]:
    """Logarithms of predicted over measured durations."""
    return [math.log(product_us(costs, product, sms) / us) for product, us in rows]


def fit(card: str) -> ProductCosts:
    """The costs of a GPU."""
    rows, sms = measured(card), load_gpu(GPUS[card]).sms

    def loss(costs: list[float]) -> float:
        return statistics.fmean(min(abs(error), MOST_ERROR) for error in errors(ProductCosts(*costs), rows, sms))

    return ProductCosts(*searched(FIRST, loss))


def searched(first: Sequence[float], loss: Callable[[list[float]], float]) -> list[float]:
    """Positive numbers of little ``loss``: random steps, shorter after a failure, from several beginnings near the
    ``first``."""
    dice = np.random.default_rng(0)
    best, least = np.log(first), math.inf
    for _ in range(STARTS):
        point = np.log(first) + dice.normal(0.0, 0.3, len(first))
        value, step = loss(np.exp(point).tolist()), 0.3
        for _ in range(ROUNDS):
            tried = point + dice.normal(0.0, step, len(first)) * (dice.random(len(first)) < 0.5)
            reached = loss(np.exp(tried).tolist())
            if reached < value:
                point, value, step = tried, reached, min(0.5, 1.3 * step)
            else:
                step = max(1e-3, 0.99 * step)
        if value < least:
            best, least = point, value
    return [float(f"{number:.4g}") for number in np.exp(best)]


def record(card: str) -> dict[str, Any]:
    """The costs of a GPU, and how far the law is off."""
    costs, rows = fit(card), measured(card)
    off = sorted(abs(math.expm1(error)) for error in errors(costs, rows, load_gpu(GPUS[card]).sms))
    quantiles = {"median": statistics.median(off), "p90": off[int(0.9 * len(off))]}
    return {"rows": len(rows), "error": {k: round(v, 4) for k, v in quantiles.items()}, "costs": costs._asdict()}


if __name__ == "__main__":
    WHERE.write_text(json.dumps({GPUS[card]: record(card) for card in GPUS}, indent=1) + "\n", encoding="utf-8")
