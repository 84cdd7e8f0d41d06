"""What tuning changed, as a table."""

from __future__ import annotations

from gpusched_env.baselines.tuning import Tuning
from gpusched_env.display.table import NONE, Table
from gpusched_env.display.words import counted

COST, CHANGE = "{:.4g}", "{:+z.1%}"


def tuning_table(tuning: Tuning) -> Table:
    """Every scheduler with its defaults and with the options found, cheapest first."""
    rows = []
    for name in sorted(tuning.trials, key=lambda name: tuning.best(name).cost):
        default, best = tuning.trials[name][0], tuning.best(name)
        options = best.spec.partition("(")[2].removesuffix(")").replace(",", ", ")
        searched = len(tuning.trials[name]) > 1
        rows.append(
            (
                name,
                COST.format(default.cost),
                COST.format(best.cost) if searched else NONE,
                CHANGE.format(best.cost / default.cost - 1.0) if searched else NONE,
                options or ("defaults" if searched else "nothing to tune"),
            )
        )
    about = (
        f"Mean cost on {counted(len(tuning.variants), 'training workload')} × {counted(len(tuning.seeds), 'seed')} "
        f"(from {min(tuning.seeds)}); {counted(tuning.budget, 'trial')} each, the defaults among them."
    )
    return Table(f"{tuning.scenario}, tuned", ("scheduler", "default", "tuned", "change", "options"), rows, about)
