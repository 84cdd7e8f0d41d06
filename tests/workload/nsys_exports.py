"""Nsight Systems exports by hand: the tables of ``nsys export --type sqlite`` (2025.1) with the columns that are read,
and some that are not."""

import sqlite3
from pathlib import Path
from typing import Any

PROCESS = (7 << 24) << 24
THREAD = PROCESS | 4242
SCHEMA = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, cuDevice INTEGER, smCount INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": """
        start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
        greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
        demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL,
        gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
        blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
        staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, sharedMemoryExecuted INTEGER,
        graphNodeId INTEGER""",
    "CUPTI_ACTIVITY_KIND_MEMCPY": """
        start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
        streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
        copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER""",
    "CUPTI_ACTIVITY_KIND_MEMSET": """
        start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
        streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL,
        bytes INTEGER NOT NULL""",
    "CUPTI_ACTIVITY_KIND_RUNTIME": """
        start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
        correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER""",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": """
        start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
        streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL,
        eventId INTEGER NOT NULL""",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": """
        deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
        globalPid INTEGER, eventId INTEGER NOT NULL""",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": """
        start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
        correlationId INTEGER, globalPid INTEGER, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL""",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, numMultiprocessors INTEGER",
    "NVTX_EVENTS": """
        start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
        textId INTEGER, domainId INTEGER""",
    "PROFILER_OVERHEAD": """
        start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
        nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, overheadType INTEGER""",
}
INVALID = 2**32 - 1


class Export:
    """An export that is being written; times are in microseconds."""

    def __init__(self, path: Path, device: str = "NVIDIA H100 80GB HBM3") -> None:
        self.path = path
        self._strings: dict[str, int] = {}
        self._database = sqlite3.connect(path)
        self.insert("TARGET_INFO_GPU", vmId=1, id=0, name=device, cuDevice=0)

    def insert(self, table: str, **values: Any) -> None:
        """A row; like nsys, the table appears with its first one."""
        self._database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({SCHEMA[table]})")
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        self._database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values()))

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 1
            self.insert("StringIds", id=self._strings[text], value=text)
        return self._strings[text]

    def kernel(
        self, start: float, duration: float, correlation: int, name: str = "k(float*)", stream: int = 7, **more: Any
    ) -> None:
        shape = dict.fromkeys(("gridY", "gridZ", "blockY", "blockZ"), 1) | {"gridX": 264, "blockX": 128}
        sizes = {"registersPerThread": 32, "staticSharedMemory": 512, "dynamicSharedMemory": 1536}
        text = self.string(name)
        values = self._work(start, duration, correlation, stream) | {"demangledName": text, "shortName": text}
        self.insert("CUPTI_ACTIVITY_KIND_KERNEL", **(values | shape | sizes | {"sharedMemoryExecuted": 8192} | more))

    def copy(self, start: float, duration: float, correlation: int, kind: int, size: int = 64, **memory: int) -> None:
        values = self._work(start, duration, correlation, 7) | memory
        self.insert("CUPTI_ACTIVITY_KIND_MEMCPY", **values, bytes=size, copyKind=kind)

    def memset(self, start: float, duration: float, correlation: int, size: int = 64) -> None:
        self.insert("CUPTI_ACTIVITY_KIND_MEMSET", **self._work(start, duration, correlation, 7), bytes=size, value=0)

    def call(self, name: str, start: float, duration: float, correlation: int, thread: int = THREAD) -> None:
        named = {"nameId": self.string(name), "returnValue": 0, "eventClass": 0}
        self.insert(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            **_span(start, duration), globalTid=thread, correlationId=correlation, **named,
        )  # fmt: skip

    def waits(self, correlation: int, kind: int, stream: int = INVALID, event: int = INVALID) -> None:
        """What CUPTI says of a synchronisation."""
        values = {"start": 0, "end": 0, "deviceId": 0, "contextId": 1, "globalPid": PROCESS}
        self.insert(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            **values, streamId=stream, correlationId=correlation, syncType=kind, eventId=event,
        )  # fmt: skip

    def records(self, correlation: int, stream: int, event: int) -> None:
        """What it says of an event's record."""
        values = {"deviceId": 0, "contextId": 1, "globalPid": PROCESS}
        self.insert(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT", **values, streamId=stream, correlationId=correlation, eventId=event
        )

    def range(self, start: float, duration: float, text: str, registered: bool = False, thread: int = THREAD) -> None:
        named = {"textId": self.string(text)} if registered else {"text": text}
        self.insert("NVTX_EVENTS", **_span(start, duration), eventType=59, globalTid=thread, **named)

    def mark(self, start: float, text: str) -> None:
        self.insert("NVTX_EVENTS", start=int(start * 1e3), eventType=34, text=text, globalTid=THREAD)

    def overhead(self, start: float, duration: float) -> None:
        named = {"nameId": self.string("CUDA profiling data flush overhead"), "returnValue": 0}
        self.insert("PROFILER_OVERHEAD", **_span(start, duration), globalTid=THREAD, **named)

    def close(self) -> Path:
        self._database.commit()
        self._database.close()
        return self.path

    def _work(self, start: float, duration: float, correlation: int, stream: int) -> dict[str, int]:
        where = {"deviceId": 0, "contextId": 1, "globalPid": PROCESS}
        return _span(start, duration) | where | {"streamId": stream, "correlationId": correlation}


def _span(start: float, duration: float) -> dict[str, int]:
    return {"start": round(start * 1e3), "end": round((start + duration) * 1e3)}


def three_kernels(path: Path, **device: str) -> Export:
    """The program of ``kineto_traces.three_kernels`` as Nsight Systems sees it."""
    export = Export(path, **device)
    export.range(1000.0, 100.0, "iteration 3", registered=True)
    export.call("cudaLaunchKernel_v7000", 1010.0, 5.0, 1)
    export.kernel(1017.0, 10.0, 1)
    export.call("cuLaunchKernelEx", 1018.0, 4.0, 2)
    export.kernel(1028.0, 14.0, 2, "gemm", gridX=16, gridY=8, blockX=384, dynamicSharedMemory=65024)
    export.call("cudaMemcpyAsync_v3020", 1025.0, 2.0, 3)
    export.copy(1043.0, 2.0, 3, kind=2)
    export.call("cudaStreamSynchronize_v3020", 1029.0, 19.5, 4)
    export.waits(4, kind=3, stream=7)
    export.call("cudaLaunchKernel_v7000", 1052.0, 4.0, 5)
    export.kernel(1058.0, 4.0, 5)
    export.call("cudaDeviceSynchronize_v3020", 1070.0, 4.0, 6)
    export.waits(6, kind=4)
    return export
