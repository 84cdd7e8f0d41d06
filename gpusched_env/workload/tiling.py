"""Whether the tiles of a workload's kernels fit those that they need."""

from __future__ import annotations

import itertools

from gpusched_env.errors import InputError
from gpusched_env.workload.events import Marks
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, TileNeeds, Variant, Workload


def check_tiles(workload: Workload, variant: Variant, marks: Marks) -> None:
    """Check the kernels of a variant that need a producer's tiles.

    Raises:
        InputError: the producer is no kernel, or comes later, or the grids do not match.
    """
    for thread, ops in enumerate(variant.all_threads):
        for place, op in enumerate(ops):
            if op.tiles < 0:
                continue
            where = f"workload {workload.name}: operation {place} of host thread {thread}"
            producer = _producer(variant, marks, op, (thread, place), where)
            # Each kernel may be given any of its forms.
            for made, used in itertools.product(*(_in_forms(workload, one.index) for one in (producer, op))):
                wrong = mismatch(made, used, op.needs)
                if wrong:
                    raise InputError(f"{where}: {wrong}")


def _in_forms(workload: Workload, index: int) -> list[Kernel]:
    """A kernel of the table as it is, and in its forms."""
    own = workload.kernels[index]
    return [own, *(workload.kernels[form] for form in own.forms)]


def _producer(variant: Variant, marks: Marks, op: Op, here: tuple[int, int], where: str) -> Op:
    """The kernel whose tiles an operation needs."""
    behind = marks.standing_for(op.tiles)
    threads = variant.all_threads
    found = [threads[thread][place] for thread, place in behind]
    if len(found) != 1 or found[0].kind is not OpKind.KERNEL:
        raise InputError(f"{where}: event {op.tiles}, whose tiles it needs, must be recorded right behind one kernel")
    thread, place = behind[0]
    if thread == here[0] and place >= here[1]:
        raise InputError(
            f"{where} needs the tiles of operation {place}, which comes after it: a producer comes before its consumer"
        )
    return found[0]


def mismatch(producer: Kernel, consumer: Kernel, needs: TileNeeds) -> str:
    """Why the tiles of two kernels do not fit each other; empty: they do."""
    columns, rows, _ = producer.grid
    consumer_columns, consumer_rows, _ = consumer.grid
    grids = f"kernel {consumer.name} has {consumer_rows} x {consumer_columns} tiles, {producer.name} {rows} x {columns}"
    if needs.kind == "tile" and (rows, columns) != (consumer_rows, consumer_columns):
        return f"{grids}: where each tile needs the one at its place, both grids must be equal"
    if needs.kind == "row" and max(rows, consumer_rows) % min(rows, consumer_rows):
        return f"{grids}: the rows of one grid must be a multiple of the other's"
    sizes = rows, consumer_rows, consumer_columns
    if needs.kind == "product" and any(size % min(sizes) for size in sizes):
        return f"{grids}: a tile reads the row that is its column; the least of both rows and its columns divides them"
    if needs.kind == "product" and needs.fold < 2:
        return f"{grids}: a product takes two of the producer's matrices, which has {needs.fold} (fold)"
    if needs.kind in ("row", "product") and columns % needs.fold:
        return f"{grids}: the producer's columns must be a multiple of the {needs.fold} matrices that it has (fold)"
    return ""
