"""Networks that share a GPU as tasks of this process: launched by Python, or from compiled code."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.gpu import more_queues
from gpusched_env.experiments.record.networks import network as program_of
from gpusched_env.experiments.record.sharing import RECORDED, WARM_UP, Spans, Task
from gpusched_env.experiments.record.steps import Step, answering_step, training_step

SOURCE: Final = Path(__file__).with_name("repeating.cpp")
MESSAGE_BYTES: Final = 4096
MOST: Final = 100_000
"""Iterations of a call, at most."""
TRACED_PIXELS: Final = 64
"""Edge of the images that networks are traced with, on the CPU; what is traced takes others as well."""


class CompiledTask:
    """One task on a stream."""

    def __init__(self, task: Task, model: Any, device: str, stream: Any) -> None:
        """
        Args:
            task: what it runs.
            model: the network as a module of PyTorch on the CPU.
            device: ``cuda`` or ``cpu``.
            stream: of PyTorch; ``None`` on the CPU.

        Raises:
            GpuError: it cannot be compiled or loaded.
        """
        self._library = library()
        where = (0, 0, 0) if stream is None else (stream.stream_id, stream.device_index, stream.device_type)
        self._stream = stream
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        with tempfile.NamedTemporaryFile(suffix=".pt") as file:
            traced(model, task.trains).save(file.name)
            self._task = self._library.task_new(
                file.name.encode(), *where, task.trains, task.batch, task.pixels, message, MESSAGE_BYTES
            )
        if not self._task:
            raise GpuError(f"{task.network} cannot be launched from compiled code: {_told(message)}")

    def repeat(self, stop: ctypes.c_int, seconds: float, most: int = MOST) -> Spans:
        """Iterations until ``stop`` is set, the time is over or there are so many; their starts and ends, s.

        Raises:
            GpuError: one fails.
        """
        spans = np.empty((most, 2))
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        found = self._library.task_repeat(
            self._task, ctypes.byref(stop), seconds, most, spans.ctypes.data, message, MESSAGE_BYTES
        )
        if found < 0:
            raise GpuError(_told(message))
        return spans[:found].copy()

    def save(self, path: Path) -> None:
        """Write the network as it has become, as TorchScript.

        Raises:
            GpuError: it cannot be written.
        """
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        if self._library.task_save(self._task, str(path).encode(), message, MESSAGE_BYTES) < 0:
            raise GpuError(_told(message))

    def free(self) -> None:
        """Give its memory back."""
        task, self._task = self._task, None
        self._library.task_free(task)


def traced(model: Any, trains: bool) -> Any:
    """A network as TorchScript."""
    torch = import_module("torch")
    given = torch.randn(2, 3, TRACED_PIXELS, TRACED_PIXELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(model.train(trains), given, check_trace=False)


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled loop, for as long as this process lives.

    Raises:
        GpuError: there is no compiler, or it fails.
    """
    torch = import_module("torch")
    extension = import_module("torch.utils.cpp_extension")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "repeating.so"
        include = [f"-I{each}" for each in extension.include_paths("cpu")]
        link = [part for each in extension.library_paths("cpu") for part in (f"-L{each}", f"-Wl,-rpath,{each}")]
        flags = ["-O1", "-std=c++20", "-shared", "-fPIC", "-w"]
        flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}")
        command = ["g++", *flags, *include, str(SOURCE), "-o", str(path), *link, "-ltorch", "-ltorch_cpu", "-lc10"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except OSError as error:
            raise GpuError(f"launching from compiled code needs g++, which does not start: {error}") from error
        except subprocess.CalledProcessError as error:
            raise GpuError(f"g++ cannot compile {SOURCE.name}: {error.stderr[:MESSAGE_BYTES]}") from error
        loaded = ctypes.CDLL(str(path))
    wide, text = ctypes.c_int64, (ctypes.c_char_p, ctypes.c_size_t)
    loaded.task_new.argtypes = [ctypes.c_char_p, wide, wide, wide, ctypes.c_int, wide, wide, *text]
    loaded.task_new.restype = ctypes.c_void_p
    loaded.task_repeat.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_double,
        wide,
        ctypes.c_void_p,
        *text,
    ]
    loaded.task_repeat.restype = wide
    loaded.task_save.argtypes = [ctypes.c_void_p, ctypes.c_char_p, *text]
    loaded.task_save.restype = ctypes.c_int
    loaded.task_free.argtypes = [ctypes.c_void_p]
    loaded.task_free.restype = None
    return loaded


def _told(message: ctypes.Array[ctypes.c_char]) -> str:
    """What went wrong: the last line, before which TorchScript says where."""
    return (message.value.decode(errors="replace").strip().splitlines() or ["unknown error"])[-1]


class EagerTask:
    """One task on a stream."""

    def __init__(self, build: Callable[[], Step], stream: Any) -> None:
        """
        Args:
            build: makes an iteration of it, on the stream.
            stream: of PyTorch; ``None`` on the CPU.
        """
        torch = import_module("torch")
        self._stream = stream
        self._on = contextlib.nullcontext if stream is None else lambda: torch.cuda.stream(stream)
        with self._on():
            self._step: Step | None = build()

    def repeat(self, stop: ctypes.c_int, seconds: float, most: int = MOST) -> Spans:
        """Iterations until ``stop`` is set, the time is over or there are so many; their starts and ends, s."""
        assert self._step is not None
        spans: list[tuple[float, float]] = []
        start_s = time.perf_counter()
        end_s = start_s + seconds
        with self._on():
            while len(spans) < most and start_s < end_s and not stop.value:
                self._step()
                if self._stream is not None:
                    self._stream.synchronize()
                now_s = time.perf_counter()
                spans.append((start_s, now_s))
                start_s = now_s
        return np.array(spans).reshape(-1, 2)

    def free(self) -> None:
        """Give its memory back."""
        self._step = None


AGES_S: Final = 1e9
"""Seconds that never end: until somebody stops it."""


class Tasks:
    """Tasks of this process that are ready, all of one launcher."""

    def __init__(self, device: str, network: Callable[[str], Any]) -> None:
        """
        Args:
            device: ``cuda`` or ``cpu``.
            network: makes one by its name, on the CPU.
        """
        more_queues()
        self.torch = import_module("torch")
        self.torch.manual_seed(0)
        # TF32 for matrices as for convolutions, which have it by default.
        self.torch.set_float32_matmul_precision("high")
        self.device, self.network = device, network
        self._ready: dict[tuple[Task, int], CompiledTask | EagerTask] = {}

    def ready(self, task: Task, priority: int = 0) -> CompiledTask | EagerTask:
        """A task that has run a few times on a stream of a priority.

        Raises:
            GpuError: it cannot be run.
        """
        key = task, priority
        if any(other.launcher != task.launcher for other, _ in self._ready):
            self.clear()
        if key not in self._ready:
            stream = self.torch.cuda.Stream(priority=priority) if self.device == "cuda" else None
            one = self._ready[key] = self._made(task, stream)
            self.synchronize()
            one.repeat(ctypes.c_int(0), AGES_S, WARM_UP[task.trains])
        return self._ready[key]

    def _made(self, task: Task, stream: Any) -> CompiledTask | EagerTask:
        if task.launcher == RECORDED:
            return EagerTask(program_of(task.network).build, stream)
        model = self.network(task.network)
        if task.launcher == "compiled":
            return CompiledTask(task, model, self.device, stream)

        def build() -> Step:
            images = self.torch.randn(task.batch, 3, task.pixels, task.pixels, device=self.device)
            return (training_step if task.trains else answering_step)(model.to(self.device), images)

        return EagerTask(build, stream)

    def synchronize(self) -> None:
        """Wait for all streams."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def clear(self) -> None:
        """Give all memory back."""
        for task in self._ready.values():
            task.free()
        self._ready.clear()
        gc.collect()
        if self.device == "cuda":
            self.torch.cuda.empty_cache()
