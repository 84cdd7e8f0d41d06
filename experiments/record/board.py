"""What the driver's library NVML says of the board while something runs: its energy and its clocks. Only read."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from gpusched_env.errors import GpuError

T = TypeVar("T")
LIBRARY: Final = "libnvidia-ml.so.1"
SM_CLOCK, MEMORY_CLOCK = 1, 2
"""``NVML_CLOCK_SM`` and ``NVML_CLOCK_MEM``."""
PERIOD_S: Final = 0.005
"""Time between two looks at the clocks."""
QUARTILES: Final = (25, 50, 75)


class NvmlBoard:
    """A board, by the UUID that CUDA has for it."""

    def __init__(self, uuid: str) -> None:
        """
        Args:
            uuid: ``GPU-`` and 32 hexadecimal digits with dashes.

        Raises:
            GpuError: there is no NVML, or it does not know the board.
        """
        try:
            self._nvml = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise GpuError(f"energy and clocks need NVIDIA's {LIBRARY}: {error}") from error
        self._handle = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(self._handle))

    def _call(self, name: str, *given: Any) -> None:
        if status := getattr(self._nvml, name)(*given):
            raise GpuError(f"{LIBRARY}: {name} has failed with {status}")

    def energy_j(self) -> float:
        """Energy since the driver was loaded, J."""
        found = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", self._handle, ctypes.byref(found))
        return found.value / 1e3

    def clock_mhz(self, clock: int = SM_CLOCK) -> int:
        """A clock now, MHz."""
        found = ctypes.c_uint()
        self._call("nvmlDeviceGetClockInfo", self._handle, clock, ctypes.byref(found))
        return found.value


def board_of(properties: Any) -> NvmlBoard | None:
    """The board of a GPU, by PyTorch's properties of it; ``None`` where NVML does not tell, as in some containers."""
    try:
        return NvmlBoard(f"GPU-{properties.uuid}")
    except GpuError:
        return None


def metered(board: NvmlBoard | None, run: Callable[[], T]) -> tuple[T, dict[str, Any]]:
    """What ``run`` returns, and of the board meanwhile: seconds, mean power (W), quartiles of the SMs' clock (MHz).

    Nothing is said of no ``board``.
    """
    if board is None:
        return run(), {}
    clocks: list[int] = []
    over = threading.Event()

    def look() -> None:
        while True:
            clocks.append(board.clock_mhz())
            if over.wait(PERIOD_S):
                return

    looking = threading.Thread(target=look)
    begun_s, begun_j = time.perf_counter(), board.energy_j()
    looking.start()
    try:
        result = run()
    finally:
        over.set()
        looking.join()
    took_s, used_j = time.perf_counter() - begun_s, board.energy_j() - begun_j
    return result, {
        "seconds": round(took_s, 3),
        "power_w": round(used_j / took_s, 1),
        "sm_clock_mhz": np.percentile(clocks, QUARTILES).tolist(),
        "memory_clock_mhz": board.clock_mhz(MEMORY_CLOCK),
    }
