"""Random windows, and what they take: plain programs of launches with the memory that they touch."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.case import Baseline, Case
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.workloads import SOURCE
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.workload import DEVICE_OPS, GraphNode, Op, OpKind, Segment, Variant, Workload

WINDOWS = 0.15
"""Share of cases in which launches pass a window."""
MOST_SEGMENTS = 3
MOST_STORAGES = 6


def has_place(workload: Workload) -> bool:
    """Whether a workload can pass a window, or be captured; drawn ones are made so that they can."""
    ops = [op for variant in workload.variants for op in variant.all_ops]
    plain = not any(op.kind is OpKind.GRAPH or op.children or op.tiles >= 0 for op in ops)
    return workload.source == SOURCE or (plain and not any(variant.threads for variant in workload.variants))


def with_window(dice: Dice, case: Case) -> Case:
    """A case whose launches pass a window."""
    window = KernelWindow(
        size=dice.log_integer(1, 64),
        streams=dice.log_integer(1, 16),
        depth=1 if dice.chance(0.4) else dice.log_integer(2, 16),
        launch_us=0.0 if dice.chance(0.3) else dice.number(0.1, 10.0),
        sync_us=0.0 if dice.chance(0.3) else dice.number(0.1, 10.0),
        insert_us=0.0 if dice.chance(0.5) else dice.number(0.05, 2.0),
        transfer_us=0.0 if dice.chance(0.5) else dice.number(0.1, 10.0),
        newer=None if dice.chance(0.5) else dice.log_integer(1, 64),
        checked_by=dice.pick(("window", "window", "application", "application", "nobody")),
    )
    player = case.player
    if isinstance(player, Baseline) and dice.chance(0.5):
        # The one scheduler of windows that makes choices of its own.
        player = Baseline(name="critical-path")
    scenario = replace(case.scenario, window=window, streams=0)
    return on_memory(dice, replace(case, player=player, scenario=scenario))


def on_memory(dice: Dice, case: Case) -> Case:
    """A case of plain programs with the memory that they touch. Shipped workloads stay as they are, theirs is not
    known."""
    tenants = tuple(replace(tenant, launch="eager", iteration_us=None) for tenant in case.scenario.tenants)
    return replace(
        case,
        scenario=replace(case.scenario, tenants=tenants),
        workloads={name: _on_memory(dice, workload) for name, workload in case.workloads.items()},
    )


def _on_memory(dice: Dice, workload: Workload) -> Workload:
    """What the first threads of a workload launch, some of it again and again, on random memory."""
    memory = _Memory(dice)
    variants = []
    for variant in workload.variants:
        ops = [_launched(op, workload.graphs) for op in variant.ops]
        ops += [op for op in ops if op.kind in DEVICE_OPS] * (dice.log_integer(1, 6) - 1)
        variants.append(Variant(ops=tuple(memory.touched(op) if op.kind in DEVICE_OPS else op for op in ops)))
    return replace(workload, variants=tuple(variants), graphs=())


def _launched(op: Op, graphs: Sequence[tuple[GraphNode, ...]]) -> Op:
    """A kernel without children and tiles; in place of a graph its first one."""
    if op.kind is not OpKind.GRAPH:
        return replace(op, children=(), tiles=-1)
    node = next(node for node in graphs[op.index] if node.kind is OpKind.KERNEL)
    return Op(OpKind.KERNEL, op.host_us, node.index, node.duration_us, stream=op.stream)


class _Memory:
    """The memory of a workload: a few storages, small enough for segments to meet."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._storages = dice.integer(1, MOST_STORAGES)
        self._bytes = dice.log_integer(1, 1000)
        self._unknown = dice.pick((0.0, 0.0, 0.1, 0.5))
        self._most_written = dice.integer(0, MOST_SEGMENTS)

    def touched(self, op: Op) -> Op:
        """A launch with what it touches."""
        return replace(op, reads=self._segments(MOST_SEGMENTS), writes=self._segments(self._most_written))

    def _segments(self, most: int) -> tuple[Segment, ...] | None:
        dice = self._dice
        if dice.chance(self._unknown):
            return None
        return tuple(self._segment() for _ in range(dice.integer(0, most)))

    def _segment(self) -> Segment:
        dice = self._dice
        first = dice.integer(0, self._bytes)
        return Segment(dice.integer(1, self._storages), first, dice.integer(first, self._bytes))
