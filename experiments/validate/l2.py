"""What the law of the L2 is worth: pairs of networks predicted with it and without, as a control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.graph_pairs import GraphPair
from gpusched_env.workload.importers.cache import loses, without_cache
from gpusched_env.workload.workload import Workload

Predicted = Sequence[tuple[GraphPair, tuple[float, float]]]
"""Pairs with the predicted slowdowns of foreground and background."""
NOTE = """\
Slowdowns with what the L2 keeps of a network and what others drive out ([the law](hardware-model.md#the-l2)), and \
with kernels that take as long as alone whatever ran before. *Kept*: networks whose weights and activations fit into \
the L2, which is in use by nobody else when they are alone. *Bias*: the median error with its sign.
"""


def without_l2(workloads: Mapping[str, Workload]) -> dict[str, Workload] | None:
    """The workloads as if nothing were lost in the L2; ``None`` where nothing is known of it anyway."""
    if not any(loses(workload) for workload in workloads.values()):
        return None
    return {name: without_cache(workload) for name, workload in workloads.items()}


def l2_table(with_law: Predicted, without: Predicted, workloads: Mapping[str, Workload]) -> Table:
    """Errors of both predictions, of networks that are kept apart from others; no rows if there is no control.

    Args:
        with_law: predicted slowdowns.
        without: of the same pairs, without the law.
        workloads: by name.
    """
    kept = {name for name, workload in workloads.items() if loses(workload)}
    sides: dict[str, list[tuple[float, float]]] = {"kept": [], "others": [], "all": []}
    for (pair, predicted), (_, control) in zip(with_law, without, strict=True) if without else ():
        each = zip((pair.fg, pair.bg), predicted, control, pair.recorded, strict=True)
        for name, with_it, without_it, measured in each:
            errors = with_it / measured - 1.0, without_it / measured - 1.0
            sides["kept" if name in kept else "others"].append(errors)
            sides["all"].append(errors)
    heads = ("networks", "slowdowns", "with: median", "p90", "bias", "without: median", "p90", "bias")
    rows = [[name, str(len(of)), *_figures(of)] for name, of in sides.items() if of]
    return Table("Without the L2", heads, rows, NOTE)


def _figures(errors: Sequence[tuple[float, float]]) -> list[str]:
    shown: list[str] = []
    for column in np.array(errors, np.float64).T:
        sizes = np.abs(column)
        shown += [f"{np.median(sizes):.2%}", f"{np.percentile(sizes, 90):.2%}", f"{np.median(column):+.2%}"]
    return shown
