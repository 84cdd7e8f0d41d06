"""Fitting the model of interference: ridge regression, its penalty chosen on networks that are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from gpusched_env.experiments.interference.pairs import Speeds
from gpusched_env.planning.interference import Floats, PairModel, features, products, speed_table, speeds_in_order
from gpusched_env.scenarios.demand import JobDemand

PENALTIES: Final = (10.0, 30.0, 100.0, 300.0, 1000.0)
EXPONENTS: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
FOLDS: Final = 5
SLOWEST: Final = 1e-3
"""Where nothing was done at all, a logarithm is taken of this."""
Demands = Mapping[tuple[str, str, str], JobDemand]
"""By network, how it is launched, and the GPU."""


def fit(pairs: Sequence[Speeds], demands: Demands, penalty: float, fitted_to: str) -> PairModel:
    """The model with the smallest sum of squared errors of log speeds and ``penalty`` times squared weights."""
    seen = np.array([features(demands[name, pair.launch, pair.gpu]) for pair in pairs for name in pair.networks])
    mean, scale = seen.mean(axis=0), seen.std(axis=0)
    terms = np.array([
        products(*((features(demands[name, pair.launch, pair.gpu]) - mean) / scale for name in pair.networks))
        for pair in pairs
    ])  # fmt: skip
    logs = np.log(np.maximum([pair.speeds for pair in pairs], SLOWEST))
    shrunk = penalty * np.eye(terms.shape[1])
    shrunk[0, 0] = 0.0
    weights = np.linalg.solve(terms.T @ terms + shrunk, terms.T @ logs).T
    rounded = [_rounded(row) for row in weights]
    return PairModel(fitted_to=fitted_to, mean=_rounded(mean), scale=_rounded(scale), weights=rounded, exponent=1.0)


def with_exponent(model: PairModel, companies: Sequence[Speeds], demands: Demands) -> PairModel:
    """The model with the exponent of :data:`EXPONENTS` whose mean error on companies is least."""

    def error(exponent: float) -> float:
        found = company_speeds(msgspec.structs.replace(model, exponent=exponent), companies, demands)
        off = [np.abs(np.array(speeds) - one.speeds).mean() for speeds, one in zip(found, companies, strict=True)]
        return float(np.mean(off))

    return msgspec.structs.replace(model, exponent=min(EXPONENTS, key=error))


def company_speeds(model: PairModel, companies: Sequence[Speeds], demands: Demands) -> list[list[float]]:
    """Predicted speeds of networks side by side."""
    return [
        speeds_in_order(
            range(len(one.networks)),
            speed_table([demands[name, one.launch, one.gpu] for name in one.networks], model),
            model.exponent,
        )
        for one in companies
    ]


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def errors(model: PairModel, pairs: Sequence[Speeds], demands: Demands) -> Floats:
    """Relative errors of predicted speeds, shape ``(pairs, 2)``."""
    found = [model.speeds(*(demands[name, pair.launch, pair.gpu] for name in pair.networks)) for pair in pairs]
    return np.array(found) / np.maximum([pair.speeds for pair in pairs], SLOWEST) - 1.0


def left_out_error(pairs: Sequence[Speeds], demands: Demands, penalty: float) -> float:
    """Mean absolute error on pairs of networks that were both left out of a fit to all pairs of the others."""
    names = sorted({name for pair in pairs for name in pair.networks})
    order = np.random.default_rng(0).permutation(len(names))
    found = []
    for fold in range(FOLDS):
        out = {names[i] for i in order[fold::FOLDS]}
        model = fit([pair for pair in pairs if out.isdisjoint(pair.networks)], demands, penalty, "a fold")
        found.append(np.abs(errors(model, [pair for pair in pairs if out.issuperset(pair.networks)], demands)).ravel())
    return float(np.concatenate(found).mean())
