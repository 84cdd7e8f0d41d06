"""Simulated GPUs whose workers take tasks from queues in device memory."""

from __future__ import annotations

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.task_queues.device import TaskDevice

_NAMES = ("compiled", "reference")


def make_task_device(name: str) -> TaskDevice:
    """A new device.

    Raises:
        InputError: no such device.
    """
    if name == "reference":
        from gpusched_env.games.task_queues.devices.reference import ReferenceTaskDevice

        return ReferenceTaskDevice()
    if name == "compiled":
        from gpusched_env.games.task_queues.devices.compiled.device import CompiledTaskDevice

        return CompiledTaskDevice()
    raise InputError(f"unknown device {name!r}; {did_you_mean(name, _NAMES)}")
