"""Taking a running kernel off the GPU: drain, save, reset; or only some of its blocks."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from simpy.events import Event

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.phases import Phase, Timer, order
from gpusched_env.hardware.timing import save_us, state_bytes
from gpusched_env.scheduling.commands import Partition, PreemptionMode

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


def preempt(
    device: ReferenceDevice, launch: Launch, mode: PreemptionMode, at_us: float
) -> Generator[Event, None, None]:
    """Carry out a preemption that takes effect at ``at_us``, unless the kernel ends before (its timers are cancelled).

    * ``drain``: after the acknowledgement no further blocks are handed out; the kernel is pending again
      when its running blocks have ended (or has finished, if none were left).
    * ``save``: running blocks stop, their registers and shared memory are written to DRAM, then their
      SMs are free. Launched again, the state is read back and they go on with the mean of their
      remaining work (exact if they started together; the total work is conserved).
    * ``reset``: running blocks are killed; launched again, the kernel runs from its start.
    """
    env, gpu = device.env, device.problem.gpu
    if at_us > env.now:
        launch.preemption = Timer(env, at_us, order(Phase.DECISION))
        yield launch.preemption
    if mode == "drain":
        launch.preemption = Timer(env, env.now + gpu.timing.drain_ack_us, order(Phase.PREEMPTION, launch.tenant))
        yield launch.preemption
        device.context_of(launch).withdraw(launch)
        return
    context = device.context_of(launch)
    context.settle()
    if not launch.on_device:
        return
    resident = context.freeze(launch)
    dead_us = _save_us(device, launch, resident) if mode == "save" else gpu.timing.reset_us
    # A context that is switched out may find at its next turn that the blocks had just ended.
    launch.preemption = Timer(env, env.now + dead_us, order(Phase.PREEMPTION, launch.tenant))
    yield launch.preemption
    # What an earlier save left to be read back comes on top.
    launch.restore_us = launch.restore_us + dead_us if mode == "save" else 0.0
    context.take_off(launch, keep_progress=mode == "save")


def save_some(
    device: ReferenceDevice, launch: Launch, partition: Partition, at_us: float
) -> Generator[Event, None, None]:
    """Save the blocks of a kernel that are resident on some SMs at ``at_us``, unless the kernel ends before.

    It stays among the resident grids. Its saved blocks are read back at once, as long as it took to save them, and
    after those of earlier saves; then it is queued again (:meth:`~.context.Context.requeue`).
    """
    env = device.env
    if at_us > env.now:
        launch.preemption = Timer(env, at_us, order(Phase.DECISION))
        yield launch.preemption
    context = device.context_of(launch)
    context.settle()
    if not launch.on_device:
        return
    stopped = context.stop(launch, partition.first, partition.sms)
    if stopped > 0:
        dead_us = _save_us(device, launch, stopped)
        launch.preemption = Timer(env, env.now + dead_us, order(Phase.PREEMPTION, launch.tenant))
        yield launch.preemption
        if context.put_back(launch):
            launch.preemptions += 1
            launch.readback_us = max(launch.readback_us, env.now) + dead_us
            launch.readback = Timer(
                env, launch.readback_us, order(Phase.STREAM, launch.tenant), lambda _: context.requeue(launch)
            )
    launch.preempting = False
    device.wake()


def _save_us(device: ReferenceDevice, launch: Launch, blocks: int) -> float:
    """Time to write the state of ``blocks`` resident blocks of a kernel, or to read it back."""
    footprint = device.problem.kernels[launch.op.identity].footprint
    return save_us(
        state_bytes(footprint.registers, footprint.shared_bytes, blocks), device.problem.gpu.dram_bytes_per_us
    )
