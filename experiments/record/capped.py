"""A client that is held to some of the SMs, beside one that has them all: the rows of ``capped.jsonl``.

Asked is whether a kernel that waits for room on its few SMs holds up kernels of equal priority that have room
elsewhere. The held client is a green context of CUDA, which has SMs of its own; MPS holds its clients to a share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gpusched_env.devices.cuda.kernels import compiled
from gpusched_env.devices.cuda.launching import MAX_DYNAMIC_SHARED
from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.gpu import SOURCE, CupyRecorder, StreamedKernel
from gpusched_env.experiments.record.library import Spec
from gpusched_env.experiments.record.scatters import LINKS, URGENT, computing, loading, repeated

CAPPED: Final = "capped"
SHARES: Final = (0.2, 0.5, 0.9)
"""Shares of the SMs that the held client has; the driver rounds them up."""
HELD_STREAM: Final = 8
"""Streams from this number on are the held client's."""
HELD_US, CHAIN_US = 20.0, 120.0


class CappedRun(NamedTuple):
    """Launches, and the share of the SMs that the held client has; ``None``: all."""

    share: float | None
    launches: tuple[StreamedKernel, ...]


def capped_runs(sms: int) -> list[CappedRun]:
    """A chain of short kernels, equal or urgent, beside a grid of many waves, held to a share or not."""
    found = []
    for long in (computing(64 * sms, 256, 400), loading(64 * sms, 256, 80)):
        for short in (computing(4, 256, 40), computing(sms, 256, 40), computing(4 * sms, 256, 40)):
            for priority in (0, URGENT):
                first = StreamedKernel(short, 1, priority, CHAIN_US)
                chain = (first, *[StreamedKernel(short, 1, priority)] * (LINKS - 1))
                found.append(CappedRun(None, (StreamedKernel(long, 0, 0, HELD_US), *chain)))
                found += [CappedRun(share, (StreamedKernel(long, HELD_STREAM, 0, HELD_US), *chain)) for share in SHARES]
    return found


def capped_rows(gpu: CupyCapped, there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows that are still missing, with the SMs that the held client really has."""
    for share, launches in capped_runs(gpu.sms)[len(there) :]:
        held = None if share is None else gpu.hold(share)
        yield {"what": CAPPED, "share": share, "sms": held, **repeated(gpu, launches)[1]}


class CupyCapped(CupyRecorder):
    """Has a green context besides the usual one; its streams are those from :data:`HELD_STREAM` on."""

    def __init__(self, number: int = 0) -> None:
        self._held_streams: set[int] = set()
        """Handles of the held client's streams."""
        self._held: dict[float, tuple[int, Any, int]] = {}
        """SMs, context and function of the held client by share."""
        self._green, self._held_work, self._number = None, 0, number
        super().__init__(number)

    def hold(self, share: float) -> int:
        """Hold the client to a share of the SMs from now on; how many it has.

        Raises:
            GpuError: the driver has no green contexts.
        """
        if share not in self._held:
            self._held[share] = self._made(share)
        held, self._green, self._held_work = self._held[share]
        for key in [key for key in self._streams if key[0] >= HELD_STREAM]:
            del self._streams[key]
        return held

    def _asked(self, name: str, *given: Any) -> Any:
        """What a function of the driver returns."""
        status, *found = getattr(self._bindings, name)(*given)
        if status != self._bindings.CUresult.CUDA_SUCCESS:
            raise GpuError(f"the driver: {name} has failed with {status.name}")
        return found[0] if len(found) == 1 else found

    def _made(self, share: float) -> tuple[int, Any, int]:
        driver = self._bindings
        device = self._asked("cuDeviceGet", self._number)
        kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
        every = self._asked("cuDeviceGetDevResource", device, kind)
        groups, _, _ = self._asked("cuDevSmResourceSplitByCount", 1, every, 0, round(share * self.sms))
        described = self._asked("cuDevResourceGenerateDesc", [groups[0]], 1)
        flags = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
        green = self._asked("cuGreenCtxCreate", described, device, int(flags))
        self._asked("cuCtxPushCurrent", self._asked("cuCtxFromGreenCtx", green))
        try:
            capability = self._cp.cuda.Device(self._number).compute_capability
            module = self._asked("cuModuleLoadData", compiled(__package__, SOURCE, f"sm_{capability}"))
            work = int(self._asked("cuModuleGetFunction", module, b"work"))
            self._cp.cuda.driver.funcSetAttribute(work, MAX_DYNAMIC_SHARED, self.most_shared)
        finally:
            self._asked("cuCtxPopCurrent")
        return int(groups[0].sm.smCount), green, work

    def _stream(self, number: int, priority: int) -> Any:
        key = number, priority
        if number >= HELD_STREAM and key not in self._streams:
            plain = int(self._bindings.CUstream_flags.CU_STREAM_NON_BLOCKING)
            made = int(self._asked("cuGreenCtxStreamCreate", self._green, plain, priority))
            self._streams[key] = self._cp.cuda.ExternalStream(made)
            self._held_streams.add(made)
        return super()._stream(number, priority)

    def _function(self, spec: Spec, stream: Any, copy: bool) -> int:
        return self._held_work if stream.ptr in self._held_streams else super()._function(spec, stream, copy)
