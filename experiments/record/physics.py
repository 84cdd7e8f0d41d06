"""Steps of articulated bodies in PyTorch: the many small kernels of physics simulations of reinforcement learning."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

SUBSTEPS: Final = 2
TIME_STEP: Final = 0.005
REST: Final = 1.0
"""Length of a joint at rest."""
DAMPING: Final = 0.99
STIFFNESS: Final = 100.0
"""Of the ground."""
LEAST: Final = 1e-6
"""Added to lengths, so that nothing is divided by zero."""


def bodies_step(bodies: int, batch: int) -> Callable[[], Any]:
    """A step of chains of bodies that springs hold together, above a ground; single precision.

    Args:
        bodies: of a chain (>= 2).
        batch: chains side by side.
    """
    torch = import_module("torch")
    shape = batch, bodies, 3
    start, speed = (torch.randn(shape, device="cuda") for _ in range(2))

    def pull(place: Any, joint: int) -> Any:
        """Force of a joint on the first of its two bodies."""
        apart = place[:, joint + 1] - place[:, joint]
        length = torch.linalg.vector_norm(apart, dim=-1, keepdim=True) + LEAST
        return (length - REST) * apart / length

    def step() -> Any:
        place, velocity = start, speed
        for _ in range(SUBSTEPS):
            pulls = [pull(place, joint) for joint in range(bodies - 1)]
            force = torch.zeros_like(place)
            for joint, one in enumerate(pulls):
                force[:, joint] += one
                force[:, joint + 1] -= one
            below = torch.clamp(0.0 - place[..., 2], min=0.0)
            force[..., 2] += below * STIFFNESS
            velocity = (velocity + force * TIME_STEP) * DAMPING
            place = place + velocity * TIME_STEP
        return place, velocity

    def without_gradients() -> Any:
        with torch.inference_mode():
            return step()

    return without_gradients
