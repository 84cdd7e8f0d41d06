"""What mechanisms are worth to pairs of networks: each predicted with one of them switched off, as a control."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.graph_pairs import GraphPair
from gpusched_env.workload.importers.cache import loses, without_cache
from gpusched_env.workload.kernel import Kernel, Waves
from gpusched_env.workload.workload import Workload

Predicted = Sequence[tuple[GraphPair, tuple[float, float]]]
"""Pairs with the predicted slowdowns of foreground and background."""
Workloads = Mapping[str, Workload]
L2, WAVES, ENDS = "the L2", "even waves", "uneven ends"
"""Mechanisms that can be switched off."""
BIAS: Final = "*Bias*: the median error with its sign."
L2_NOTE: Final = f"""\
Slowdowns with what the L2 keeps of a network and what others drive out ([the law](hardware-model.md#the-l2)), and \
with kernels that take as long as alone whatever ran before. *Kept*: networks whose weights and activations fit into \
the L2, which is in use by nobody else when they are alone. {BIAS}
"""
WAVES_NOTE: Final = f"""\
Slowdowns with kernels whose blocks fill SMs evenly ([even waves](hardware-model.md#even-waves)) and leave them \
unevenly, and with kernels of equal blocks whose last wave leaves SMs idle. {BIAS}
"""
ENDS_NOTE: Final = f"""\
Slowdowns with long kernels some of whose blocks leave their SM early ([uneven ends](hardware-model.md#uneven-ends)), \
and with kernels whose blocks all take the same time. {BIAS}
"""


def without_l2(workloads: Workloads) -> dict[str, Workload] | None:
    """The workloads as if nothing were lost in the L2; ``None`` where nothing is known of it anyway."""
    if not any(loses(workload) for workload in workloads.values()):
        return None
    return {name: without_cache(workload) for name, workload in workloads.items()}


def in_full_waves(workloads: Workloads) -> dict[str, Workload] | None:
    """The workloads with kernels in full waves; ``None`` where they are all so anyway."""
    return _with_waves(workloads, "full", instead_of=("even", "together"))


def ending_together(workloads: Workloads) -> dict[str, Workload] | None:
    """The workloads with kernels whose blocks take the same time; ``None`` where they do anyway."""
    return _with_waves(workloads, "together", instead_of=("even",))


def _with_waves(workloads: Workloads, waves: Waves, instead_of: Collection[str]) -> dict[str, Workload] | None:
    if not any(kernel.waves in instead_of for workload in workloads.values() for kernel in workload.kernels):
        return None

    def changed(kernel: Kernel) -> Kernel:
        return replace(kernel, waves=waves) if kernel.waves in instead_of else kernel

    return {
        name: replace(workload, kernels=tuple(changed(kernel) for kernel in workload.kernels))
        for name, workload in workloads.items()
    }


CONTROLS: Final[Mapping[str, Callable[[Workloads], dict[str, Workload] | None]]] = {
    L2: without_l2,
    WAVES: in_full_waves,
    ENDS: ending_together,
}
"""What makes workloads for which a mechanism is off, by its name."""


def control_tables(complete: Predicted, controls: Mapping[str, Predicted], workloads: Workloads) -> list[Table]:
    """A table for each control: errors with the mechanism and without it.

    Args:
        complete: predicted slowdowns.
        controls: of the same pairs, by what is off.
        workloads: by name.
    """
    kept = {name for name, workload in workloads.items() if loses(workload)}
    found = []
    if L2 in controls:
        rows = _errors(
            complete, controls[L2], lambda pair, side: "kept" if (pair.fg, pair.bg)[side] in kept else "others"
        )
        found.append(_table(L2, "networks", {name: rows.get(name, []) for name in ("kept", "others", "all")}, L2_NOTE))
    for off, note in ((WAVES, WAVES_NOTE), (ENDS, ENDS_NOTE)):
        if off in controls:
            rows = _errors(complete, controls[off], lambda _, side: ("foreground", "background")[side])
            found.append(_table(off, "side", rows, note))
    return found


def _errors(
    complete: Predicted, control: Predicted, group: Callable[[GraphPair, int], str]
) -> dict[str, list[tuple[float, float]]]:
    """Errors of slowdowns with and without, by group (of a pair and 0 or 1, its side) and of all."""
    found: dict[str, list[tuple[float, float]]] = {}
    everything = []
    for (pair, predicted), (_, without) in zip(complete, control, strict=True):
        for side, measured in enumerate(pair.recorded):
            errors = predicted[side] / measured - 1.0, without[side] / measured - 1.0
            found.setdefault(group(pair, side), []).append(errors)
            everything.append(errors)
    return {**found, "all": everything}


def _table(off: str, of: str, groups: Mapping[str, Sequence[tuple[float, float]]], note: str) -> Table:
    heads = (of, "slowdowns", "with: median", "p90", "bias", "without: median", "p90", "bias")
    rows = [[name, str(len(errors)), *_figures(errors)] for name, errors in groups.items() if errors]
    return Table(f"Without {off}", heads, rows, note)


def _figures(errors: Sequence[tuple[float, float]]) -> list[str]:
    shown: list[str] = []
    for column in np.array(errors, np.float64).T:
        sizes = np.abs(column)
        shown += [f"{np.median(sizes):.2%}", f"{np.percentile(sizes, 90):.2%}", f"{np.median(column):+.2%}"]
    return shown
