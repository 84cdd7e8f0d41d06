"""A GPU that runs the kernels of ``tiles.cu`` block by block, in Python: what the CUDA source does, by the same tables.

Slots are taken by blocks in the order in which their kernels were launched, and by the kernels of a stream one after
another. Times are in microseconds.
"""

from __future__ import annotations

import ctypes
import heapq
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from gpusched_env.experiments.measure.gpu import Measurements, RepetitionTimes

PRODUCT_STEP_US = 5.0


class Array(np.ndarray):
    """NumPy's, with its address where CuPy has it."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


def words(address: int, count: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_int32 * count).from_address(int(address)))


class Stream:
    current: ClassVar[list[Stream]] = []

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.priority = priority

    def __enter__(self) -> Stream:
        Stream.current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        Stream.current.pop()

    def wait_event(self, event: Any) -> None:
        pass


NULL = Stream()


class Kernel:
    def __init__(self, gpu: TileGpu, name: str) -> None:
        self.gpu, self.name = gpu, name

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], shared_mem: int = 0
    ) -> None:
        stream = (Stream.current or [NULL])[-1]
        self.gpu.launched.append(
            SimpleNamespace(name=self.name, grid=grid, args=args, shared=shared_mem, stream=stream)
        )


class TileGpu:
    """Stands for :class:`~gpusched_env.experiments.measure.gpu.MeasuringGpu`."""

    def __init__(self, sms: int, fails: str = "", post_us: float = 0.0, wait_us: float = 0.0) -> None:
        """``fails``: a kernel that the driver refuses; ``post_us``, ``wait_us``: what a block takes for each."""
        self.sms, self.fails, self.costs_us = sms, fails, (post_us, wait_us)
        self.launched: list[Any] = []
        event = SimpleNamespace(record=lambda stream: None)
        self.cupy = SimpleNamespace(
            cuda=SimpleNamespace(Stream=Stream, Event=lambda disable_timing: event, get_current_stream=lambda: NULL)
        )

    def kernels(self, package: str, file: str, options: tuple[str, ...]) -> Any:
        assert (file, options) == ("tiles.cu", ("-std=c++17",))
        return SimpleNamespace(get_function=lambda name: Kernel(self, name))

    def hold(self, ns: int) -> None:
        pass

    def array(self, values: Any) -> Any:
        return np.array(values).view(Array)

    def recording(self) -> Measurements:
        return Measurements(
            gpu="NVIDIA H100 80GB HBM3", sms=self.sms, clock_mhz=1000.0, driver="1", cuda="2", date="2026-01-01",
            versions={}, repetitions=1,
        )  # fmt: skip

    def took(self, work: Callable[[], None], prepare: Callable[[], None] = lambda: None) -> RepetitionTimes:
        self.launched = []
        prepare()
        work()
        names = [launch.name for launch in self.launched]
        if self.fails in names:
            raise RuntimeError(f"CUDA_ERROR_LAUNCH_FAILED: {self.fails}")
        occupied = sum(launch.grid[0] for launch in self.launched if launch.name == "occupy")
        tiles = [launch for launch in self.launched if launch.name in ("spin", "product")]
        us = float(Run(tiles, self.sms - occupied, self.costs_us).us) if tiles else 10.0 * len(names)
        return RepetitionTimes(us, us, us)


class Run:
    """Some kernels of tiles: how long they take together, and what they leave behind."""

    def __init__(self, launches: list[Any], sms: int, costs_us: tuple[float, float]) -> None:
        self.launches, self.costs_us = launches, costs_us
        self.free = sms * (1 if launches[0].shared > 110 * 1024 else 2)
        self.us = 0.0
        self.sums: dict[tuple[int, int], Any] = {}
        self.events: list[tuple[float, int, int, int]] = []
        self.stuck: list[tuple[int, int, int]] = []
        self.left = [launch.grid[0] * launch.grid[1] for launch in launches]
        self.next = [0] * len(launches)
        while any(self.left):
            self._dispatch()
            if self.events:
                self.us, launch, block, step = heapq.heappop(self.events)
                self._go_on(launch, block, step)
            else:
                self._give_up()

    def _dispatch(self) -> None:
        for number, launch in enumerate(self.launches):
            before = [n for n in range(number) if self.launches[n].stream is launch.stream]
            while (
                self.free
                and self.next[number] < launch.grid[0] * launch.grid[1]
                and not any(self.left[n] for n in before)
            ):
                self.free -= 1
                heapq.heappush(self.events, (self.us, number, self.next[number], 0))
                self.next[number] += 1

    def _awaited(self, number: int, block: int, step: int) -> list[bool]:
        """Whether each wait before a step is over."""
        t, waits = self.launches[number].args[0], int(self.launches[number].args[0]["waits"])
        if not t["consuming"] or not waits:
            return []
        table = [words(t[name], (block + 1) * waits)[block * waits :] for name in ("awaited", "before")]
        return [
            words(t["semaphores"], semaphore + 1)[semaphore] >= t["round"] * t["value"]
            for semaphore, before in zip(*table, strict=True)
            if before == step
        ]

    def _go_on(self, number: int, block: int, step: int, gave_up: bool = False) -> None:
        launch = self.launches[number]
        t = launch.args[0]
        if step == int(t["steps"]):
            self._end(number, block)
        elif all(self._awaited(number, block, step)) or gave_up:
            tile = block // launch.grid[0] * int(t["columns"]) + step
            if t["consuming"] and words(t["ended"], tile + 1)[tile] < t["round"]:
                words(t["early"], 1)[0] += 1
            if launch.name == "product":
                self._multiply(number, block, step)
            step_us = launch.args[1] / 1000.0 if launch.name == "spin" else PRODUCT_STEP_US
            step_us += len(self._awaited(number, block, step)) * self.costs_us[1]
            if t["posting"] and step + 1 == int(t["steps"]):
                step_us += self.costs_us[0]
            heapq.heappush(self.events, (self.us + step_us, number, block, step + 1))
        else:
            self.stuck.append((number, block, step))

    def _end(self, number: int, block: int) -> None:
        launch = self.launches[number]
        t = launch.args[0]
        self.left[number] -= 1
        self.free += 1
        if not t["consuming"]:
            words(t["ended"], block + 1)[block] = t["round"]
            if t["posting"]:
                semaphore = words(t["post"], block + 1)[block]
                words(t["semaphores"], semaphore + 1)[semaphore] += 1
        if launch.name == "product":
            launch.args[3][self._place(launch, block)] = self.sums.pop((number, block))
        stuck, self.stuck = self.stuck, []
        for waiting in stuck:
            self._go_on(*waiting)

    @staticmethod
    def _place(launch: Any, block: int) -> tuple[slice, slice]:
        row, column = (slice(128 * at, 128 * at + 128) for at in divmod(block, launch.grid[0]))
        return row, column

    def _multiply(self, number: int, block: int, step: int) -> None:
        """A step, with what is in the first operand when it begins."""
        launch = self.launches[number]
        t, a, b, _, inner = launch.args
        (row, column), width = self._place(launch, block), int(inner) // int(t["steps"])
        part = slice(step * width, (step + 1) * width)
        self.sums[number, block] = self.sums.get((number, block), 0.0) + a[row, part] @ b[part, column]

    def _give_up(self) -> None:
        stuck, self.stuck = self.stuck, []
        t = self.launches[stuck[0][0]].args[0]
        self.us += float(t["limit_us"])
        words(t["gave_up"], 1)[0] += len(stuck)
        for waiting in stuck:
            self._go_on(*waiting, gave_up=True)
