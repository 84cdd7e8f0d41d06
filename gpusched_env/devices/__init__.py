"""The GPUs behind the scheduling contract."""

from __future__ import annotations

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scheduling.device import Device

_NAMES = ("compiled", "reference")


def device_names() -> list[str]:
    """Names that :func:`make_device` knows."""
    return list(_NAMES)


def make_device(name: str) -> Device:
    """A new device.

    Raises:
        InputError: no such device.
    """
    if name == "reference":
        from gpusched_env.devices.reference.device import ReferenceDevice

        return ReferenceDevice()
    if name == "compiled":
        from gpusched_env.devices.compiled.device import CompiledDevice

        return CompiledDevice()
    raise InputError(f"unknown device {name!r}; {did_you_mean(name, _NAMES)}")
