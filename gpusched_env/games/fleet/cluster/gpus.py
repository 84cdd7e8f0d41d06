"""Whether a pod fits on a node, and which of the node's GPUs it gets.

GPUs are given as a mask, a bit for each. As the published simulator has it (``open_gpu_share.go``, ``fit.go``), a pod
needs CPU, memory, a GPU model that it allows, and as many GPUs as it asks for with its part free on each. A pod with
whole GPUs gets the first free ones, whatever the policy.
"""

from __future__ import annotations

from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU


@procedure
def fits(state: Any, pods: Any, node: int, kind: int) -> bool:
    """Whether a pod of a kind can be placed on a node."""
    if state.cpu_left[node] < pods.cpu_milli[kind] or state.memory_left[node] < pods.memory_mib[kind]:
        return False
    if pods.gpus[kind] == 0:
        return True
    if not pods.allowed[kind, state.model[node]]:
        return False
    room = 0
    for gpu in range(state.gpus[node]):
        if state.gpu_left[node, gpu] >= pods.gpu_milli[kind]:
            room += 1
    return bool(room >= pods.gpus[kind])


@procedure
def shares_gpu(pods: Any, kind: int) -> bool:
    """Whether a pod takes a part of one GPU."""
    return bool(pods.gpus[kind] == 1 and pods.gpu_milli[kind] < WHOLE_GPU)


@procedure
def first_free_gpus(state: Any, pods: Any, node: int, kind: int) -> int:
    """The mask of a pod with whole GPUs."""
    mask, wanted = 0, pods.gpus[kind]
    for gpu in range(state.gpus[node]):
        if wanted > 0 and state.gpu_left[node, gpu] == WHOLE_GPU:
            mask |= 1 << gpu
            wanted -= 1
    return mask


@procedure
def tightest_gpu(state: Any, pods: Any, node: int, kind: int) -> int:
    """The mask of a pod that shares a GPU: where least is left, the first of equal ones."""
    found, least = 0, WHOLE_GPU + 1
    for gpu in range(state.gpus[node]):
        left = state.gpu_left[node, gpu]
        if pods.gpu_milli[kind] <= left < least:
            found, least = 1 << gpu, left
    return found


@procedure
def drawn_gpu(state: Any, pods: Any, node: int, kind: int, draw: float) -> int:
    """The mask of a pod that shares a GPU: any that has room, with equal chances; ``draw`` is from 0 to below 1."""
    room = 0
    for gpu in range(state.gpus[node]):
        if state.gpu_left[node, gpu] >= pods.gpu_milli[kind]:
            room += 1
    ahead = int(draw * room)
    for gpu in range(state.gpus[node]):
        if state.gpu_left[node, gpu] >= pods.gpu_milli[kind]:
            if ahead == 0:
                return 1 << gpu
            ahead -= 1
    return 0


@procedure
def take(state: Any, pods: Any, node: int, kind: int, mask: int) -> None:
    """A pod's CPU, memory and GPUs are no longer free."""
    state.cpu_left[node] -= pods.cpu_milli[kind]
    state.memory_left[node] -= pods.memory_mib[kind]
    for gpu in range(state.gpus[node]):
        if (mask >> gpu) & 1:
            state.gpu_left[node, gpu] -= pods.gpu_milli[kind]


@procedure
def give_back(state: Any, pods: Any, node: int, kind: int, mask: int) -> None:
    """What :func:`take` took is free again."""
    state.cpu_left[node] += pods.cpu_milli[kind]
    state.memory_left[node] += pods.memory_mib[kind]
    for gpu in range(state.gpus[node]):
        if (mask >> gpu) & 1:
            state.gpu_left[node, gpu] += pods.gpu_milli[kind]
