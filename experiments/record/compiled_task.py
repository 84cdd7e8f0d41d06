"""A network that is launched from compiled code: TorchScript run by a loop in C++, outside the interpreter's lock.

A call through ctypes gives the lock up until it returns, and the loop (``repeating.cpp``) runs all iterations of a task
in one call. Autograd runs in C++ threads of its own, which take the lock for Python's hooks only; there are none.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.sharing import Spans, Task

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
