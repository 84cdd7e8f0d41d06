"""What an environment reports at the end of an episode, as flat dictionaries of floats."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from gpusched_env.episodes.metrics import Metrics, episode_metrics
from gpusched_env.episodes.session import Episode
from gpusched_env.scenarios.problem import Problem


def episode_summary(episode: Episode) -> dict[str, Any]:
    """What ``info`` holds at the end: ``episode_metrics`` and ``reward_terms``."""
    metrics = episode_metrics(episode)
    return {"episode_metrics": flat_metrics(metrics), "reward_terms": reward_terms(episode.problem, metrics.terms)}


def flat_metrics(metrics: Metrics) -> dict[str, float]:
    """Figures by name, those of a tenant as ``<tenant>/<figure>``; undefined (NaN) ones are left out."""
    figures = asdict(metrics)
    flat = {f"cost/{name}": value for name, value in figures.pop("terms").items()}
    for tenant in figures.pop("tenants"):
        name = tenant.pop("name")
        flat.update({f"{name}/{figure}": value for figure, value in tenant.items()})
    flat.update(figures)
    return {name: float(value) for name, value in flat.items() if not math.isnan(value)}


def reward_terms(problem: Problem, terms: dict[str, float]) -> dict[str, float]:
    """What each cost term contributed to the return: minus its weight times its value; they add up to the return."""
    weights = problem.scenario.reward
    return {name: 0.0 - float(getattr(weights, name)) * value for name, value in terms.items()}
