"""ACS: kernels of one program run concurrently where the memory that they touch allows it.

Durvasula et al., *ACS: Concurrent Kernel Execution on Irregular, Input-Dependent Computational Graphs* (arXiv
2401.12377; PACT 2024 as ACE). Launches enter a window in program order, are checked against those in it, and go out of
order: the oldest that waits for none. In software (ACS-SW) a thread for each stream launches one and waits for its end;
in hardware (ACS-HW) the GPU's command processor holds the window, and a kernel that is ready starts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.window import KernelWindow

LISTED: Final = 64
"""M of ACS-HW, an estimate: the paper says that its list takes at most 4 KB, a launch of four segments takes 64 bytes
of it (two addresses a segment)."""


class AcsSoftware(PassThrough):
    """ACS-SW: a window of launches on the host, a thread and a kernel a stream, oldest ready kernel first."""

    def __init__(
        self,
        size: int | None = None,
        streams: int | None = None,
        launch_us: float | None = None,
        sync_us: float | None = None,
    ) -> None:
        """Fields of :class:`~gpusched_env.scenarios.window.KernelWindow`; ``None``: the scenario's, or the default.

        Raises:
            InputError: one is out of range.
        """
        self._given = {"size": size, "streams": streams, "launch_us": launch_us, "sync_us": sync_us}
        self.set_up = SetUp(window=self._window)

    def _window(self, offered: KernelWindow | None, gpu: GpuSpec) -> KernelWindow:
        """The scenario's window with the scheduler's options; a stream has one kernel."""
        return window_with(offered or KernelWindow(), "acs-sw", **self._given, depth=1)


class AcsHardware(PassThrough):
    """ACS-HW: a window of launches in the GPU, oldest ready kernel first, without a way to the host and back."""

    set_up = SetUp(hardware=True)

    def __init__(self, size: int | None = None, newer: int = LISTED) -> None:
        """``size``: launches that the window holds; ``None``: the scenario's, or 32. ``newer``: launches that may have
        entered it since the oldest that has not ended, as many as the host's list holds.

        Raises:
            InputError: one is out of range.
        """
        self._size, self._newer = size, newer
        self.set_up = replace(self.set_up, window=self._window)

    def _window(self, offered: KernelWindow | None, gpu: GpuSpec) -> KernelWindow:
        """An entry takes as many cycles as the window has slots, an end one less; the host does the check.

        A slot is as good as a stream here: as many run as are ready.
        """
        size = self._size or (offered or KernelWindow()).size
        cycle_us = 1.0 / gpu.clock_mhz
        return window_with(
            KernelWindow(
                launch_us=0.0, insert_us=size * cycle_us, sync_us=(size - 1) * cycle_us,
                transfer_us=gpu.timing.launch_latency_us, checked_by="application",
            ),
            "acs-hw", size=size, streams=size, newer=self._newer,
        )  # fmt: skip


def window_with(window: KernelWindow, name: str, **fields: float | None) -> KernelWindow:
    """``window`` with the fields that are not ``None``, for the scheduler ``name``.

    Raises:
        InputError: one is out of range.
    """
    new = {**msgspec.to_builtins(window), **{key: value for key, value in fields.items() if value is not None}}
    try:
        return msgspec.convert(new, KernelWindow)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {error}") from error
