"""Which specification a GPU has, by what its driver calls it."""

from __future__ import annotations

import re

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, gpu_names, load_gpu


def match_gpu(device: str, origin: str) -> GpuSpec:
    """The shipped specification of the GPU that a driver calls ``device``.

    Every part of the specification's name must be a word of ``device``, except ``sxm``, which drivers leave
    out: such a specification fits unless ``device`` says that it is another board (``PCIe``, ``NVL``).

    Raises:
        InputError: not exactly one fits; ``origin`` says whose GPU it is: a file's, or this machine's.
    """
    words = set(re.findall(r"[a-z0-9]+", device.lower()))

    def fits(name: str) -> bool:
        parts = name.split("-")
        return not ("sxm" in parts and words & {"pcie", "nvl"}) and words.issuperset(p for p in parts if p != "sxm")

    fitting = [name for name in gpu_names() if fits(name)]
    if len(fitting) != 1:
        seen = f"its GPU is {device!r}" if device else "it does not name its GPU"
        raise InputError(
            f"{origin}: {seen}; say which specification fits (gpu=, --gpu): {', '.join(gpu_names())}, or a .yaml file"
        )
    return load_gpu(fitting[0])
