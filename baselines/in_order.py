"""Release in order: of the launches that can go, the oldest goes, behind what it waits for if it must."""

from __future__ import annotations

from gpusched_env.baselines.acs import window_with
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.window import KernelWindow


class InOrder(PassThrough):
    """The window's own order: the oldest launch that can go, also behind what it waits for in its stream."""

    def __init__(self, size: int | None = None, streams: int | None = None, depth: int | None = None) -> None:
        """Fields of :class:`~gpusched_env.scenarios.window.KernelWindow`; ``None``: the scenario's, or the default.

        Raises:
            InputError: one is out of range.
        """
        self._given = {"size": size, "streams": streams, "depth": depth}
        self.set_up = SetUp(window=self._window)

    def _window(self, offered: KernelWindow | None, gpu: GpuSpec) -> KernelWindow:
        """The scenario's window with the scheduler's options."""
        return window_with(offered or KernelWindow(), "in-order", **self._given)
