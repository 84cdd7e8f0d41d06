"""Taking a running kernel off the GPU: drain, save, reset."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from simpy.events import Event

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.phases import Phase, Timer, order
from gpusched_env.hardware.timing import save_us, state_bytes
from gpusched_env.scheduling.commands import PreemptionMode

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
    context.freeze(launch)
    resident = context.sms.resident(launch.slot)
    profile = device.problem.kernels[launch.op.identity]
    bytes_ = state_bytes(profile.footprint.registers, profile.footprint.shared_bytes, resident)
    dead_us = save_us(gpu, bytes_) if mode == "save" else gpu.timing.reset_us
    # A context that is switched out may find at its next turn that the blocks had just ended.
    launch.preemption = Timer(env, env.now + dead_us, order(Phase.PREEMPTION, launch.tenant))
    yield launch.preemption
    launch.restore_us = dead_us if mode == "save" else 0.0
    context.take_off(launch, keep_progress=mode == "save")
