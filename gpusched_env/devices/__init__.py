"""The GPUs behind the scheduling contract."""

from __future__ import annotations

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scheduling.contract import Device

_SIMULATED = ("compiled", "reference")
_REAL = "cuda"


def device_names() -> list[str]:
    """Names of the simulated ones that :func:`make_device` knows."""
    return list(_SIMULATED)


def make_device(name: str) -> Device:
    """A new device.

    Args:
        name: ``compiled`` or ``reference``; ``cuda`` is the GPU of this machine. As long as the compiled one is being
            built (:mod:`gpusched_env.building`), one that begins on the reference device.

    Raises:
        InputError: no such device; for ``cuda``, there is no GPU, or CuPy is not installed.
    """
    if name == _REAL:
        from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
        from gpusched_env.devices.cuda.device import RealDevice

        return RealDevice(CupyGpu())
    if name == "reference":
        from gpusched_env.devices.reference.device import ReferenceDevice

        return ReferenceDevice()
    if name == "compiled":
        from gpusched_env.devices.either import EitherDevice, compiled_device, is_compiled_ready

        return compiled_device() if is_compiled_ready() else EitherDevice()
    raise InputError(f"unknown device {name!r}; {did_you_mean(name, (*_SIMULATED, _REAL))}")
