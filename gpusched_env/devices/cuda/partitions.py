"""SM partitions of a real GPU: green contexts, whose streams run on some of the SMs.

A GPU hands out SMs in groups (of 8 on Hopper), so a partition has as many groups as come nearest to what was asked for,
one at least. Which SMs of the chip a group has is the driver's choice; groups are disjoint.
"""

from __future__ import annotations

from typing import Any

from gpusched_env.errors import GpuError


class Partitions:
    """The SMs of one GPU, split once; each partition is made when it is first asked for."""

    def __init__(self, number: int) -> None:
        """``number``: of the GPU in this machine, which is in use already.

        Raises:
            GpuError: the driver does not split it.
        """
        from cuda.core import Device, SMResourceOptions

        self._device = Device(number)
        self._device.set_current()
        whole = self._device.resources.sm
        self._sms = int(whole.sm_count)
        self.unit = int(whole.min_partition_size)
        self._groups: list[Any] = []
        failure: Exception | None = None
        for count in range(self._sms // self.unit, 1, -1):
            try:
                self._groups, _ = whole.split(SMResourceOptions(count=(self.unit,) * count))
                break
            except Exception as error:  # cuda-core has no class of its own for errors of the driver.
                failure = error
        if not self._groups:
            raise GpuError(f"the driver does not split the GPU's {self._sms} SMs: {failure}")
        self._contexts: dict[tuple[int, int], Any] = {}

    def stream(self, first: int, sms: int, priority: int) -> Any:
        """A stream of cuda-core whose work runs on a partition.

        Args:
            first: of its SMs.
            sms: how many.
            priority: of the stream.
        """
        from cuda.core import ContextOptions, StreamOptions

        place = groups_of(first, sms, self._sms, len(self._groups))
        context = self._contexts.get(place)
        if context is None:
            chosen = self._groups[slice(*place)]
            context = self._contexts[place] = self._device.create_context(ContextOptions(resources=chosen))
        return context.create_stream(StreamOptions(nonblocking=True, priority=priority))

    def close(self) -> None:
        """Give the contexts back; their streams are gone before."""
        for context in self._contexts.values():
            context.close()
        self._contexts = {}


def groups_of(first: int, sms: int, all_sms: int, groups: int) -> tuple[int, int]:
    """The first group of a partition, and the one behind its last.

    Args:
        first: of its SMs.
        sms: how many.
        all_sms: of the GPU.
        groups: that it is split into.
    """
    begin, end = (round(place * groups / all_sms) for place in (first, first + sms))
    begin = min(begin, groups - 1)
    return begin, max(begin + 1, end)
