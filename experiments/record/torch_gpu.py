"""Networks on the GPU at hand through PyTorch: captured as CUDA graphs, each on its own stream, and traced eagerly."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from gpusched_env.errors import GpuError, InputError
from gpusched_env.experiments.record.board import board_of
from gpusched_env.experiments.record.gpu import more_queues
from gpusched_env.experiments.record.graphs import REPLAYS, Span
from gpusched_env.experiments.record.networks import network, program
from gpusched_env.experiments.record.rows import MEBIBYTES, KernelTime
from gpusched_env.experiments.record.steps import Step
from gpusched_env.versions import versions

WARM_UP: Final = 3
"""Iterations before a capture, in which libraries choose their kernels, and replays after it, the first of which moves
the graph to the GPU."""
EAGER_WARM_UP: Final = 10
TIMED: Final = 20
"""Iterations without the profiler, from whose median the importer takes the host's speed."""
PROFILED: Final = 3
COLD: Final = 15
"""Iterations of which a kernel's time is the median."""
BARE: Final = 7
"""Iterations of which a kernel's time is the median, where every operator comes behind a read of other memory."""
BEHIND: Final = 40
"""Replays behind a read of other memory."""


class TorchReplay:
    """A replay between two events."""

    def __init__(self, zero: Any, start: Any, end: Any) -> None:
        self._zero, self._start, self._end = zero, start, end

    def begun(self) -> bool:
        """Whether the replay has started."""
        return bool(self._start.query())

    def done(self) -> bool:
        """Whether the replay has ended."""
        return bool(self._end.query())

    def span(self) -> Span:
        """When it ran; its duration is that between its own events, since events tell times in single precision."""
        start_ms = float(self._zero.elapsed_time(self._start))
        return Span(start_ms, start_ms + float(self._start.elapsed_time(self._end)))


class TorchGraph:
    """A network captured as a CUDA graph on a stream of its own, whose priority its kernels keep."""

    def __init__(self, gpu: TorchGpu, step: Step, priority: int) -> None:
        """
        Args:
            gpu: has the event that times count from.
            step: one iteration.
            priority: of the stream, CUDA's convention.
        """
        self._gpu, self._cuda = gpu, gpu.torch.cuda
        self.stream = self._cuda.Stream(priority=priority)
        self._graph = self._cuda.CUDAGraph()
        self._cuda.synchronize()
        with self._cuda.stream(self.stream):
            for _ in range(WARM_UP):
                step()
        self._cuda.synchronize()
        with self._cuda.graph(self._graph, stream=self.stream):
            # Its memory is the graph's as long as somebody has it.
            self._result = step()
        with self._cuda.stream(self.stream):
            for _ in range(WARM_UP):
                self._graph.replay()
        self._cuda.synchronize()

    def replay(self) -> TorchReplay:
        """Queue a replay behind those before it."""
        start, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        with self._cuda.stream(self.stream):
            start.record()
            self._graph.replay()
            end.record()
        return TorchReplay(self._gpu.zero, start, end)


def holding(step: Step) -> Step:
    """``step``, none of whose results is freed before its next iteration: no memory is used twice within one."""
    from torch.utils._python_dispatch import TorchDispatchMode

    held: list[Any] = []

    class Holding(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            held.append(result)
            return result

    def iteration() -> Any:
        held.clear()
        with Holding():  # type: ignore[no-untyped-call]
            return step()

    return iteration


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """What PyTorch raises becomes an error that says ``what`` has failed."""
    try:
        yield
    except RuntimeError as error:
        raise GpuError(f"{what}: {error}; choose others with --networks") from error


class TorchGpu:
    """Networks on the GPU at hand, each built and captured when it is first asked for."""

    def __init__(self) -> None:
        """
        Raises:
            InputError: PyTorch is not installed, or sees no GPU.
        """
        more_queues()
        try:
            self.torch = import_module("torch")
        except ImportError:
            raise InputError("recording networks needs PyTorch: pip install torch") from None
        cuda = self.torch.cuda
        if not cuda.is_available():
            raise InputError(
                "PyTorch sees no GPU: there is none in this machine, or this build of PyTorch is for CPUs only"
            )
        self.torch.manual_seed(0)
        self._steps: dict[str, Step] = {}
        self._weights: dict[str, int] = {}
        """Bytes that each network took when it was built."""
        self._graphs: dict[tuple[str, int], TorchGraph] = {}
        self._elsewhere: Any = None
        self.restart()
        properties = cuda.get_device_properties(0)
        self.board = board_of(properties)
        """Tells energy and clocks."""
        self.head: dict[str, Any] = {
            "gpu": str(properties.name),
            "sms": int(properties.multi_processor_count),
            "torch": versions()["torch"],
            "cuda": str(self.torch.version.cuda),
            "replays": REPLAYS,
        }
        """The head of the file of pairs."""

    def restart(self) -> None:
        """Times of replays count from now on."""
        self.zero = self.torch.cuda.Event(enable_timing=True)
        self.zero.record()
        self.zero.synchronize()

    def _step(self, name: str) -> Step:
        """One eager iteration of a network."""
        if name not in self._steps:
            before = self.torch.cuda.memory_allocated()
            self._steps[name] = network(name).build()
            self._weights[name] = self.torch.cuda.memory_allocated() - before
        return self._steps[name]

    def graph(self, name: str, priority: int = 0) -> TorchGraph:
        """A network on a stream of a priority.

        Raises:
            GpuError: it cannot be built or captured.
        """
        key = name, priority
        if key not in self._graphs:
            with _told(f"{name} does not become a CUDA graph"):
                self._graphs[key] = TorchGraph(self, self._step(name), priority)
        return self._graphs[key]

    def trace(self, name: str, path: Path) -> None:
        """Write the PyTorch profiler's trace of an eager network, with the times of iterations without the profiler.

        Args:
            name: of the network.
            path: a file that ends in ``.json.gz``, for ``gpusched import trace``.

        Raises:
            GpuError: it cannot be built or run.
        """
        with _told(f"{name} cannot be traced"):
            self._profile(self._step(name), path)

    def trace_memory(self, name: str, path: Path, execution: Path, *, held: bool) -> None:
        """The same of a program, with PyTorch's execution trace, which says what memory operators touch.

        Args:
            name: of the program.
            path: of the profiler's trace.
            execution: of the execution trace, plain JSON.
            held: whether no memory of an iteration is used again within it.

        Raises:
            GpuError: it cannot be built or run.
        """
        with _told(f"{name} cannot be traced"):
            step = program(name).build()
            self._profile(holding(step) if held else step, path, execution)

    def held_bytes(self, name: str) -> tuple[int, int]:
        """Bytes that a network took when it was built, and the most that an iteration holds besides."""
        step = self._step(name)
        step()
        before = self.torch.cuda.memory_allocated()
        self.torch.cuda.reset_peak_memory_stats()
        step()
        return self._weights[name], int(self.torch.cuda.max_memory_allocated()) - before

    def kernel_times(self, name: str) -> list[KernelTime]:
        """The kernels of an eager network in order, as the L2 is emptied never, before iterations, before operators.

        Raises:
            GpuError: it cannot be built or run, or its kernels differ from one iteration to the next.
        """
        with _told(f"{name} cannot be traced"):
            step = self._step(name)
            found = [
                self._kernels(step, COLD),
                self._kernels(self._behind_read(step), COLD),
                self._kernels(self._reading_between(step), BARE),
            ]
        names = [[kernel for kernel, _ in one] for one in found]
        if names.count(names[0]) != len(names):
            raise GpuError(f"{name}: other kernels behind an empty L2; choose others with --networks")
        times = zip(*([us for _, us in one] for one in found), strict=True)
        return [KernelTime(kernel, *three) for kernel, three in zip(names[0], times, strict=True)]

    def behind_us(self, name: str, mebibytes: int) -> float:
        """A replay behind a read of so many MiB in the same stream, the median, us."""
        graph = self.graph(name)
        spans = []
        for _ in range(WARM_UP + BEHIND):
            with self.torch.cuda.stream(graph.stream):
                self._read(mebibytes)
                one = graph.replay()
            self.torch.cuda.synchronize()
            spans.append(one.span())
        return 1e3 * statistics.median(span.end_ms - span.start_ms for span in spans[WARM_UP:])

    def _read(self, mebibytes: int) -> None:
        """Read memory that nobody else does."""
        if self._elsewhere is None:
            self._elsewhere = self.torch.ones(MEBIBYTES[-1] << 18, device="cuda")
        if mebibytes > 0:
            self._elsewhere[: mebibytes << 18].sum()

    def _marked_read(self) -> None:
        """Empty the L2, between two kernels that are nobody else's."""
        self.torch.cuda._sleep(1)
        self._read(MEBIBYTES[-1])
        self.torch.cuda._sleep(1)

    def _behind_read(self, step: Step) -> Step:
        """``step`` behind something that empties the L2."""

        def iteration() -> Any:
            self._marked_read()
            return step()

        return iteration

    def _reading_between(self, step: Step) -> Step:
        """``step``, each of whose operators comes behind something that empties the L2."""
        from torch.utils._python_dispatch import TorchDispatchMode

        empty = self._marked_read

        class Emptying(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if not function.is_view:
                    empty()
                return function(*args, **(kwargs or {}))

        def iteration() -> Any:
            with Emptying():  # type: ignore[no-untyped-call]
                return step()

        return iteration

    def _kernels(self, step: Step, count: int) -> list[tuple[str, float]]:
        """Names and median times (us) of an iteration's kernels over iterations, without what empties the L2."""
        from torch.profiler import ProfilerActivity, profile

        for _ in range(WARM_UP):
            step()
        self.torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as running:
            for _ in range(count):
                step()
                self.torch.cuda.synchronize()
        on_gpu = self.torch.autograd.DeviceType.CUDA
        # In order of their launches: branches that a library forks run side by side.
        events = sorted(running.profiler.kineto_results.events(), key=lambda event: event.correlation_id())
        own: list[Any] = []
        emptying = False
        for event in events:
            if event.device_type() != on_gpu or event.name().startswith(("Mem", "Context")):
                continue
            if "spin_kernel" in event.name():
                emptying = not emptying
            elif not emptying:
                own.append(event)
        length, rest = divmod(len(own), count)
        iterations = [own[first : first + length] for first in range(0, len(own), length)] if length else []
        names = [[event.name() for event in one] for one in iterations]
        if rest or not names or names.count(names[0]) != len(names):
            raise RuntimeError("its kernels differ from one iteration to the next")
        times = [statistics.median(event.duration_ns() for event in same) for same in zip(*iterations, strict=True)]
        return [(kernel, ns / 1e3) for kernel, ns in zip(names[0], times, strict=True)]

    def _profile(self, step: Step, path: Path, execution: Path | None = None) -> None:
        from torch._C._profiler import _ExperimentalConfig
        from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

        # The profiler goes by the end of the name.
        partial = path.with_name(f"partial-{path.name}")
        for _ in range(EAGER_WARM_UP):
            step()
        unprofiled_us = [self._iteration_us(step) for _ in range(TIMED)]
        observer = None if execution is None else ExecutionTraceObserver().register_callback(str(execution))
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
            schedule=schedule(wait=0, warmup=2, active=PROFILED, repeat=1),
            on_trace_ready=lambda made: made.export_chrome_trace(str(partial)),
            execution_trace_observer=observer,
            # Which stream each wait for an event is in: of what libraries fork and join, that is else inferred, too.
            experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True),
        ) as running:
            running.add_metadata_json("gpusched_iteration_us", json.dumps(unprofiled_us))
            for _ in range(2 + PROFILED):
                self._iteration_us(step)
                running.step()
        os.replace(partial, path)

    def _iteration_us(self, step: Step) -> float:
        """Time of the host for an iteration, until the GPU is done with it."""
        self.torch.cuda.synchronize()
        begun = time.perf_counter()
        step()
        self.torch.cuda.synchronize()
        return (time.perf_counter() - begun) * 1e6
