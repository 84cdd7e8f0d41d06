"""Tasks on a Ray cluster, in place of worker processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import ray

from gpusched_env.errors import GpuschedError
from gpusched_env.experiments.lib.ray_cluster import connected

A = TypeVar("A")
R = TypeVar("R")


def run_tasks_on_ray(
    task: Callable[[A], R], arguments: Sequence[A], address: str
) -> Generator[tuple[int, R], None, None]:
    """As :func:`~gpusched_env.experiments.lib.workers.run_tasks`, a task a core of the cluster.

    Args:
        task: that other machines can be sent; they have this package installed.
        arguments: handed out in order.
        address: of a cluster (``host:port``, ``auto``, ``ray://...``), or ``local`` for one of this machine.

    Raises:
        InputError: there is no cluster at ``address``.
        GpuschedError: a machine was lost with its tasks; or whatever the task raised.
    """
    with connected(address):
        remote: Any = ray.remote(_run).options(max_retries=0)
        shared = ray.put(task)
        ahead: dict[Any, int] = {remote.remote(shared, argument): index for index, argument in enumerate(arguments)}
        while ahead:
            (ready,), _ = ray.wait(list(ahead), num_returns=1)
            yield ahead.pop(ready), _result(ready)


def _run(task: Callable[[A], R], argument: A) -> R:
    return task(argument)


def _result(ready: Any) -> Any:
    """What came out; errors that say all there is to know come without the frames of the other machine."""
    try:
        return ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, GpuschedError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise GpuschedError(f"a task on the Ray cluster was lost; run it again ({error})") from error
