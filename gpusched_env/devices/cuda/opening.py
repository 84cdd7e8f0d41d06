"""CuPy, which whatever runs on a real GPU opens here."""

from __future__ import annotations

from typing import Any

from gpusched_env.errors import InputError


def open_cupy(work: str) -> Any:
    """The module ``cupy``.

    Args:
        work: what needs it, for the error: ``a real GPU``.

    Raises:
        InputError: CuPy is not installed, or there is no GPU with a driver.
    """
    try:
        import cupy
    except ImportError:
        raise InputError(f"{work} needs CuPy: install the extra, gpusched-env[gpu]") from None
    if not cupy.is_available():
        raise InputError(f"there is no NVIDIA GPU with its driver in this machine; {work} needs one")
    return cupy
