"""ResNet-152 from its layers: which share of a request's time each kernel takes.

K. He, X. Zhang, S. Ren, J. Sun, *Deep Residual Learning for Image Recognition* (CVPR 2016), Table 1; strides as in
torchvision, where the 3x3 convolution of a stage's first block halves the image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

STAGES: Final = ((3, 64), (8, 128), (36, 256), (3, 512))
"""Blocks of each stage, and the width of its 3x3 convolutions."""
EXPANSION: Final = 4
TILE: Final = 64
"""A block of a convolution makes so many channels of as many pixels."""
THREADS: Final = 256
ELEMENTS_A_BLOCK: Final = 4 * THREADS
FLOAT_BYTES: Final = 4
REACHED: Final = 0.8
"""Share of the DRAM bandwidth that element-wise kernels reach."""
Runtime = Literal["engine", "eager"]
"""``engine``: normalisation, activation and addition are part of the convolution before (TensorRT's layer fusion);
``eager``: each is a kernel (PyTorch)."""


class Layer(NamedTuple):
    """A convolution, or what stands beside it."""

    channels: int
    """Of the output."""
    pixels: int
    """Of the output, one image."""
    inputs: int
    """Multiplications a value of the output."""
    adds: bool = False
    """The block's input is added to what it makes."""

    def multiplications(self, batch: int) -> float:
        return float(batch * self.channels * self.pixels * self.inputs)

    def values(self, batch: int) -> int:
        return batch * self.channels * self.pixels


def layers() -> Iterator[Layer]:
    """The network's convolutions in order, and its last matrix."""
    yield Layer(64, 112**2, 3 * 7**2)
    before, side = 64, 56
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            halved = side // 2 if stage and not block else side
            yield Layer(width, side**2, before)
            yield Layer(width, halved**2, 9 * width)
            if not block:
                yield Layer(EXPANSION * width, halved**2, before)
            yield Layer(EXPANSION * width, halved**2, width, adds=True)
            before, side = EXPANSION * width, halved
    yield Layer(1000, 1, before)


def resnet152(gpu: str, alone_us: float, runtime: Runtime, batch: int, host_us: float) -> Workload:
    """Requests whose kernels take ``alone_us`` alone together with the gaps between them.

    Element-wise kernels take their traffic at the bandwidth that such ones reach; the rest is divided between the
    convolutions by multiplications.

    Args:
        gpu: on which that is so.
        alone_us: of a request, an input.
        runtime: how kernels are fused.
        batch: images a request (>= 1).
        host_us: of a launch call.
    """
    spec = load_gpu(gpu)
    timing, bandwidth = spec.timing, REACHED * spec.dram_bytes_per_us
    network = list(layers())
    traffic = [_traffic(layer, batch) if runtime == "eager" else [] for layer in network]
    gaps = len(network) + sum(map(len, traffic)) - 1
    overhead_us = host_us + timing.launch_latency_us + gaps * timing.stream_gap_us + timing.sync_latency_us
    moved_us = sum(map(sum, traffic)) / bandwidth
    multiplications = sum(layer.multiplications(batch) for layer in network)
    us_each = (alone_us - overhead_us - moved_us) / multiplications
    kernels: list[Kernel] = []
    for layer, moved in zip(network, traffic, strict=True):
        kernels.append(_convolution(layer, batch, us_each * layer.multiplications(batch)))
        blocks = math.ceil(layer.values(batch) / ELEMENTS_A_BLOCK)
        kernels += [_kernel("element-wise", (blocks, 1), bytes_ / bandwidth, "memory", bytes_) for bytes_ in moved]
    ops = [Op(OpKind.KERNEL, host_us, index, kernel.duration_us) for index, kernel in enumerate(kernels)]
    return Workload(
        name=f"resnet152_{runtime}",
        gpu=gpu,
        source="layers of ResNet-152, CVPR 2016",
        kernels=tuple(kernels),
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC))),),
        iteration_us=(alone_us,),
    )


def _traffic(layer: Layer, batch: int) -> list[float]:
    """Bytes that normalisation, addition and activation move: each value is read and written, an addend read."""
    return [times * float(layer.values(batch) * FLOAT_BYTES) for times in ((2, 3, 2) if layer.adds else (2, 2))]


def _convolution(layer: Layer, batch: int, us: float) -> Kernel:
    """Tiles of channels and pixels; weights and inputs are read once, where a filter reuses them."""
    tiles = math.ceil(batch * layer.pixels / TILE), math.ceil(layer.channels / TILE)
    read = layer.inputs * layer.channels + min(layer.inputs, layer.channels) * batch * layer.pixels
    return _kernel("convolution", tiles, us, "compute", float((layer.values(batch) + read) * FLOAT_BYTES), 96)


def _kernel(
    name: str,
    blocks: tuple[int, int],
    us: float,
    kind: Literal["compute", "memory"],
    bytes_: float,
    registers: int = 32,
) -> Kernel:
    return Kernel(
        name=name,
        grid=(*blocks, 1),
        block=(THREADS, 1, 1),
        registers=registers,
        duration_us=us,
        kind=kind,
        dram_bytes=bytes_,
        waves="even",
    )
