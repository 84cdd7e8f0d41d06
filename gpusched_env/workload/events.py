"""What the events of a variant stand for.

An event stands for the last operations before its record in its stream; an operation behind a wait for it waits for
those, and so does a kernel that needs their tiles. Operations that others wait for get a *mark*, a number within the
variant, and the others name the mark.
"""

from __future__ import annotations

from gpusched_env.workload.workload import DEVICE_OPS, Op, OpKind, Variant

Ref = tuple[int, int]
"""An operation of a variant: thread and place."""


class Marks:
    """What the events of a variant stand for, and the marks of the operations that are waited for."""

    def __init__(self, variant: Variant) -> None:
        self._awaited: dict[Ref, tuple[Ref, ...]] = {}
        self._events: dict[int, tuple[Ref, ...]] = {}
        for thread, ops in enumerate(variant.all_threads):
            self._resolve_records(thread, ops)
        for thread, ops in enumerate(variant.all_threads):
            self._resolve_waits(thread, ops)
        used = sorted({ref for refs in self._awaited.values() for ref in refs})
        self._numbers = {ref: number for number, ref in enumerate(used)}
        self.count = len(used)

    def _resolve_records(self, thread: int, ops: tuple[Op, ...]) -> None:
        frontier: dict[int, tuple[Ref, ...]] = {}
        for place, op in enumerate(ops):
            if op.kind in DEVICE_OPS:
                frontier[op.stream] = ((thread, place),)
            elif op.kind is OpKind.RECORD:
                self._events[op.index] = frontier.get(op.stream, ())
            elif op.kind is OpKind.WAIT:
                known = self._events.get(op.index, ())
                frontier[op.stream] = (*frontier.get(op.stream, ()), *known)

    def _resolve_waits(self, thread: int, ops: tuple[Op, ...]) -> None:
        waits: dict[int, list[Ref]] = {}
        for place, op in enumerate(ops):
            if op.kind is OpKind.WAIT:
                waits.setdefault(op.stream, []).extend(self._events.get(op.index, ()))
            elif op.kind is OpKind.SYNC_EVENT:
                self._awaited[thread, place] = self._events.get(op.index, ())
            elif op.kind in DEVICE_OPS:
                whole = self._events.get(op.tiles, ()) if op.tiles >= 0 else ()
                before = dict.fromkeys([*waits.pop(op.stream, ()), *whole])
                self._awaited[thread, place] = tuple(ref for ref in before if ref != (thread, place))

    def awaited(self, thread: int, place: int) -> tuple[Ref, ...]:
        """The operations that one waits for by events."""
        return self._awaited.get((thread, place), ())

    def awaited_marks(self, thread: int, place: int) -> tuple[int, ...]:
        """Their marks."""
        return tuple(sorted({self._numbers[ref] for ref in self.awaited(thread, place)}))

    def of(self, ref: Ref) -> int:
        """The mark of an operation; -1: none waits for it."""
        return self._numbers.get(ref, -1)

    def standing_for(self, event: int) -> tuple[Ref, ...]:
        """The operations that an event stands for; none where nothing records it."""
        return self._events.get(event, ())

    def tiles(self, op: Op) -> int:
        """The mark of the kernel whose tiles a kernel needs; -1: none."""
        return self.of(self._events[op.tiles][0]) if op.tiles >= 0 else -1
