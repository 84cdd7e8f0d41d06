"""Comparisons with other outcomes than what ran: schedulers that served fewer jobs, used less energy, did the same."""

from __future__ import annotations

import dataclasses
from typing import Any

from gpusched_env.experiments.comparison import Comparison


def changed(
    comparison: Comparison, scheduler: str, *, of_tenants: dict[str, Any] | None = None, **figures: Any
) -> Comparison:
    """``comparison`` with other figures for one scheduler on all seeds.

    Args:
        of_tenants: the same for each of the tenants.
        figures: of the whole GPU.
    """
    runs = []
    for run in comparison.runs:
        if run.scheduler == scheduler:
            tenants = tuple(dataclasses.replace(t, **(of_tenants or {})) for t in run.metrics.tenants)
            metrics = dataclasses.replace(run.metrics, tenants=tenants, **figures)
            run = dataclasses.replace(run, metrics=metrics)
        runs.append(run)
    return dataclasses.replace(comparison, runs=tuple(runs))


def with_copies(comparison: Comparison, scheduler: str, copies: dict[str, float]) -> Comparison:
    """``comparison`` with more schedulers: by name, their cost; all else is as ``scheduler`` had it."""
    more = tuple(
        dataclasses.replace(run, scheduler=name, metrics=dataclasses.replace(run.metrics, cost=cost))
        for name, cost in copies.items()
        for run in comparison.of(scheduler)
    )
    descriptions = comparison.descriptions | dict.fromkeys(copies, "A copy.")
    return dataclasses.replace(comparison, runs=comparison.runs + more, descriptions=descriptions)
