"""Simulated GPUs at the granularity of warps, for applications whose threads launch kernels."""

from __future__ import annotations

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.device import LaunchDevice

_NAMES = ("compiled", "reference")


def make_launch_device(name: str) -> LaunchDevice:
    """A new device.

    Raises:
        InputError: no such device.
    """
    if name == "reference":
        from gpusched_env.games.child_launches.devices.reference import ReferenceWarpDevice

        return ReferenceWarpDevice()
    if name == "compiled":
        from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice

        return CompiledWarpDevice()
    raise InputError(f"unknown device {name!r}; {did_you_mean(name, _NAMES)}")
