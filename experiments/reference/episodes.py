"""The page on which a scheduler is chosen and an episode seen, without installing anything.

``python -m gpusched_env.experiments.reference.episodes docs/episodes.html`` plays the episodes and writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gpusched_env.display.table import NONE
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.report.page import timeline_data
from gpusched_env.versions import versions

SCHEDULERS: Final = (
    *("pass-through", "priority-streams", "mps", "exclusive", "sjf", "edf", "orion", "reef", "tally", "lithos"),
)
"""The plain GPU first, which others stand beside."""
SCENARIOS: Final[dict[str, dict[str, Any]]] = {
    "Toy": {},
    "InferenceBesideTraining": {"window_us": (10_000.0, 14_000.0)},
    "MultiTenantBurst": {"window_us": (60_000.0, 62_000.0)},
}
"""Options of each comparison: a stretch in which tenants meet, short enough for a page."""
FIRST: Final = "orion"
"""The scheduler that is shown at first."""
SEED: Final = 0
MOST_COLUMNS: Final = 3
"""Tenants of which figures are shown."""


def episodes_page(
    scenarios: Mapping[str, Mapping[str, Any]] = SCENARIOS, schedulers: Sequence[str] = SCHEDULERS
) -> str:
    """The page, HTML, with an episode of each scheduler on each scenario.

    Args:
        scenarios: by name, with further options of :func:`~gpusched_env.experiments.compare.compare`.
        schedulers: names; :data:`FIRST` among them.
    """
    found = [
        compare(scenario, schedulers, seeds=[SEED], record="blocks", **options)
        for scenario, options in scenarios.items()
    ]
    return page(
        "episodes.html",
        title="A scheduler at work",
        episodes=[_episode(comparison) for comparison in found],
        seed=SEED,
        version=versions()["gpusched-env"],
        command="python -m gpusched_env.experiments.reference.episodes docs/episodes.html",
    )


def _episode(comparison: Comparison) -> dict[str, Any]:
    """What the page has of a scenario, plain data.

    Keys: ``scenario``, ``summary``, ``first`` (a scheduler), ``heads`` of figures, ``timeline`` as
    :func:`~gpusched_env.experiments.report.page.timeline_data` has it, and ``rows`` by scheduler, each with ``track``
    (its place in the timeline: those that came to the same share one), ``figures`` and ``about``.
    """
    tenants = comparison.tenants[:MOST_COLUMNS]
    return {
        "scenario": comparison.problem.scenario.name,
        "summary": comparison.problem.scenario.summary,
        "first": FIRST,
        "heads": ["cost", *(f"{name}: mean, µs" for name in tenants)],
        "timeline": timeline_data(comparison),
        "rows": {
            name: {
                "track": next(place for place, group in enumerate(comparison.groups) if name in group),
                "figures": _figures(comparison, name),
                "about": comparison.descriptions[name],
            }
            for name in comparison.schedulers
        },
    }


def _figures(comparison: Comparison, scheduler: str) -> list[str]:
    (run,) = comparison.of(scheduler)
    means = [tenant.turnaround_mean_us for tenant in run.metrics.tenants[:MOST_COLUMNS]]
    return [f"{run.metrics.cost:,.2f}", *(NONE if mean != mean else f"{mean:,.0f}" for mean in means)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.reference.episodes PAGE")
    write_file(Path(sys.argv[1]), episodes_page(), "PAGE")
