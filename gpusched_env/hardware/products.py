"""Which specification a GPU has, by what its driver says of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from gpusched_env.display.words import printable
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, gpu_names, load_gpu

_MEMORY_SHARE: Final = 0.1
"""Data sheets give GB for GiB (7 % more), and the driver keeps a part."""


class Product(NamedTuple):
    """What a driver says of a GPU."""

    name: str = ""
    """Empty: unknown."""
    sms: int | None = None
    """Streaming multiprocessors (compute units); ``None``: unknown."""
    memory_bytes: int | None = None
    """Device memory; ``None``: unknown."""

    @classmethod
    def of(cls, name: object, sms: object, memory_bytes: object) -> Product:
        """From values of a file; what is no name or no size is unknown."""
        sizes = (size if isinstance(size, int) and 0 < size < 2**53 else None for size in (sms, memory_bytes))
        return cls(printable(name) if isinstance(name, str) else "", *sizes)

    def __str__(self) -> str:
        sizes = [f"{self.sms} SMs"] if self.sms is not None else []
        sizes += [f"{self.memory_bytes / 1e9:.3g} GB"] if self.memory_bytes is not None else []
        return (repr(self.name) if self.name else "unnamed") + (f" with {' and '.join(sizes)}" if sizes else "")

    def has_size_of(self, spec: GpuSpec) -> bool:
        """Whether SMs and memory, as far as they are known, are those of a specification."""
        least, most = (spec.memory_bytes * (1.0 + share) for share in (-_MEMORY_SHARE, _MEMORY_SHARE))
        return self.sms in (None, spec.sms) and (self.memory_bytes is None or least <= self.memory_bytes <= most)


def alike(products: Sequence[Product]) -> Product:
    """Any of some GPUs, if they are called alike; else an unknown one."""
    return products[0] if len({product.name for product in products}) == 1 else Product()


def match_gpu(device: Product | str, origin: str) -> GpuSpec:
    """The shipped specification of a GPU, or of what its driver calls so.

    Its summary has every word of the driver's name (``3070 Ti`` is no 3070, and ``PCIe`` no SXM), which has every part
    of the specification's name except ``sxm``, which drivers leave out. SMs and memory are the same.

    Raises:
        InputError: not exactly one fits; ``origin`` says whose GPU it is: a file's, or this machine's.
    """
    product = Product(device) if isinstance(device, str) else device
    specs = [load_gpu(name) for name in gpu_names()]
    named = [spec for spec in specs if _is_called(spec, _words(product.name))]
    fitting = [spec for spec in named if product.has_size_of(spec)]
    if len(fitting) != 1:
        seen = f"its GPU is {product}" if product.name else "it does not name its GPU"
        other = "".join(f" ({_sizes(spec)})" for spec in named)
        raise InputError(
            f"{origin}: {seen}{other}; say which specification fits (gpu=, --gpu): {', '.join(gpu_names())}, or a "
            ".yaml file"
        )
    return fitting[0]


def taken_for(product: Product, spec: GpuSpec) -> str:
    """A note for a recording whose GPU is said to be ``spec`` and has another size; empty if it has that size."""
    return "" if product.has_size_of(spec) else f"recorded on {product}; {_sizes(spec)}"


def _is_called(spec: GpuSpec, words: set[str]) -> bool:
    parts = set(spec.name.split("-")) - {"sxm"}
    return parts <= words <= _words(spec.summary)


def _words(text: str) -> set[str]:
    joined = re.sub(r"\b(\d+) gb\b", r"\1gb", text.lower())
    return set(re.findall(r"[a-z0-9]+", joined))


def _sizes(spec: GpuSpec) -> str:
    return f"{spec.name} has {spec.sms} SMs and {spec.memory_bytes / 1e9:.3g} GB"
