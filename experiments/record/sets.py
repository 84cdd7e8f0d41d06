"""The files of synthetic kernels, row by row: kernels alone, sweeps of their grids, what runs together, launch costs.

Every function yields the rows that are still missing, given those that are there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.experiments.record import library as blocks
from gpusched_env.experiments.record import library as scenarios
from gpusched_env.experiments.record.gpu import CupyRecorder, StreamedKernel
from gpusched_env.experiments.record.library import LONG_US, SHORT_US, Named, Spec, draw, sweep
from gpusched_env.experiments.validate.recordings import (
    KERNEL_SETS,
    RecordedScenario,
    ValidatedLaunch,
    find_all,
    read_rows,
)

KERNELS, WAVES, LAUNCH = "kernels", "waves", "launch"
LONG, SHORT = "k", "s"
"""What ids of the library's kernels begin with; pairs and mixes are of long ones, sequences of short ones."""
SOLO_DELAY_US: Final = 10.0
"""Delay of a kernel alone: the kernel that raises its flag is gone when it starts."""
ROW_NAMES: Final = {"pairs": "pair", "mixes": "mix", "sequences": "seq"}
GAPS: Final = (1, 2, 8, 64, 512)
"""Launches in a row, of the gap between two."""
TINY: Final = Spec(kind="compute", grid=1, block=32, smem=0, iters=1, fma=16, load=0)
SYNCHRONISED, EVENTS = 200, 50
LINK: Final = Spec(kind="compute", grid=64, block=128, smem=0, iters=40, fma=16, load=0)
"""A kernel of a chain: of 2 us, as those of small networks."""
LINKS: Final = 64
FORMS: Final = ("stream", "graph")
BESIDES: Final = ("nothing", "chain", "chain of other code")
"""Repetitions of launch costs."""


@dataclass(frozen=True, slots=True)
class RecordingSizes:
    """How much is recorded."""

    repetitions: int = 8
    """Repetitions that count; one before them does not."""
    long: int = 64
    short: int = 64
    """Kernels of the library."""
    scenarios: Mapping[str, int] = field(default_factory=lambda: {"pairs": 150, "mixes": 200, "sequences": 100})
    every_wave: int = 1
    """The step of the sweep: one of so many grids is recorded."""


QUICK: Final = RecordingSizes(
    repetitions=3, long=15, short=15, scenarios={"pairs": 20, "mixes": 15, "sequences": 5}, every_wave=8
)


class Synthetic:
    """Records synthetic kernels on one GPU."""

    def __init__(self, gpu: CupyRecorder, seed: int, sizes: RecordingSizes, like: Path | None = None) -> None:
        """
        Args:
            gpu: that is recorded.
            seed: of the draws.
            sizes: how much.
            like: folder of another recording, whose kernels and scenarios are recorded again; ``None``: drawn ones.

        Raises:
            InputError: there is no recording in ``like``.
        """
        self.gpu = gpu
        self._seed = seed
        self._sizes = sizes
        self._like = like
        self._given: list[Named] = read_rows(find_all(like, KERNELS)[0], Named) if like else []
        for kernel in self._given:
            if kernel.smem > gpu.most_shared:
                raise InputError(
                    f"{like}: kernel {kernel.id} has {kernel.smem} bytes of shared memory a block; "
                    f"this GPU has at most {gpu.most_shared}"
                )

    # ---- kernels alone -----------------------------------------------------------------------------------------------

    def kernels(self, there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """The library: every kernel alone."""
        known = {row["id"] for row in there}
        for name, make in self._library().items():
            if name not in known:
                spec = make()
                yield {**spec.work(self.gpu.regs), "id": name, "solo": blocks.solo(self._alone(spec))}

    def _library(self) -> dict[str, Callable[[], Spec]]:
        """What makes the kernel of an id."""
        if self._given:
            return {kernel.id: functools.partial(_plain, kernel) for kernel in self._given}
        counts = {LONG: (self._sizes.long, LONG_US), SHORT: (self._sizes.short, SHORT_US)}
        return {
            name: functools.partial(self._drawn, name, range_us)
            for letter, (count, range_us) in counts.items()
            for name in (f"{letter}{number:02d}" for number in range(count))
        }

    def _drawn(self, name: str, range_us: tuple[float, float]) -> Spec:
        def duration_us(spec: Spec) -> float:
            return blocks.solo(self._alone(spec))["duration_us"]

        return draw(name, self._seed, self.gpu.sms, self.gpu.most_shared, range_us, duration_us)

    def waves(self, there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Kernels alone while their grids grow."""
        specs = sweep(self.gpu.sms, self.gpu.most_shared)[:: self._sizes.every_wave]
        for spec in specs[len(there) :]:
            yield {"spec": spec.work(self.gpu.regs), **blocks.medians(self._alone(spec))}

    def _alone(self, spec: Spec) -> list[blocks.BlockFigures]:
        return [one for (one,) in self._repeated([StreamedKernel(spec, delay_us=SOLO_DELAY_US)])]

    # ---- what runs together ------------------------------------------------------------------------------------------

    def together(
        self, what: str, there: Sequence[Mapping[str, Any]], library: Sequence[Mapping[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Pairs, mixes or sequences.

        Args:
            what: one of ``KERNEL_SETS``.
            there: rows of them that are recorded.
            library: rows of :meth:`kernels`.
        """
        specs = {row["id"]: msgspec.convert(row, Spec) for row in library}
        solo_us = {row["id"]: float(row["solo"]["duration_us"]) for row in library}
        for name, launches in self._scenarios(what, solo_us)[len(there) :]:
            found = self._repeated(
                [StreamedKernel(specs[o.kernel], o.stream, o.priority, o.delay_us) for o in launches]
            )
            rows = [msgspec.structs.asdict(launch) for launch in launches]
            yield {"id": name, "launches": rows, **blocks.measured(found)}

    def _scenarios(self, what: str, solo_us: Mapping[str, float]) -> list[tuple[str, Sequence[ValidatedLaunch]]]:
        """Ids and launches; of another recording only those whose kernels are in the library."""
        count = self._sizes.scenarios[what]
        if self._like is not None:
            (path,) = find_all(self._like, what)
            rows = read_rows(path, RecordedScenario)
            kept = [row for row in rows if all(launch.kernel in solo_us for launch in row.launches)]
            return [(row.id, row.launches) for row in kept[:count]]
        long, short = ([name for name in solo_us if name[0] == letter] for letter in (LONG, SHORT))
        made: dict[str, Callable[[int], list[ValidatedLaunch]]] = {
            "pairs": lambda n: scenarios.pair(n, self._seed, {name: solo_us[name] for name in long}),
            "mixes": lambda n: scenarios.mix(n, self._seed, long),
            "sequences": lambda n: scenarios.sequence(n, self._seed, short),
        }
        return [(f"{ROW_NAMES[what]}{number:03d}", made[what](number)) for number in range(count)]

    def _repeated(self, launches: Sequence[StreamedKernel]) -> list[list[blocks.BlockFigures]]:
        """Figures of every launch in every repetition; one before them is not counted."""
        runs = (self.gpu.run(launches) for _ in range(1 + self._sizes.repetitions))
        return [[blocks.figures(launch) for launch in run] for run in runs][1:]

    # ---- launches ----------------------------------------------------------------------------------------------------

    def launch(self, there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """What launches cost: host time, gap between two kernels of a stream, an event between two streams, the gap
        between the kernels of a stream or graph alone and beside another one."""
        steps: list[Callable[[], dict[str, Any]]] = [
            *(functools.partial(self._back_to_back, count) for count in GAPS),
            self._synchronised,
            self._event,
            *(functools.partial(self._chain, form, beside) for form in FORMS for beside in BESIDES),
        ]
        for step in steps[len(there) :]:
            yield step()

    def _back_to_back(self, count: int) -> dict[str, Any]:
        host_us, gap_ns = self.gpu.host_us(TINY, count), self._gap_ns(count)
        return {
            "what": "same_stream_back_to_back",
            "n": count,
            "host_us_per_launch_cupy": host_us,
            "device_gap_ns": gap_ns,
        }

    def _synchronised(self) -> dict[str, Any]:
        took = [self.gpu.synchronised_us(TINY) for _ in range(SYNCHRONISED)]
        median_us, p99_us = np.percentile(took, (50, 99)).tolist()
        return {"what": "launch_plus_sync_host_us", "median": median_us, "p99": p99_us}

    def _event(self) -> dict[str, Any]:
        gaps = [self.gpu.event_gap_ns(TINY) for _ in range(EVENTS)]
        return {"what": "cross_stream_event_dependency_ns", "median": float(np.median(gaps))}

    def _gap_ns(self, count: int) -> float:
        """Median time between the end of a kernel and the start of the next in its stream, of ``count`` such times."""
        return self._gaps([StreamedKernel(TINY, delay_us=SOLO_DELAY_US), *[StreamedKernel(TINY)] * count], count + 1)[0]

    def _chain(self, form: str, beside: str) -> dict[str, Any]:
        """A chain of kernels in a stream or a graph, with nothing or another such chain beside it."""
        launches = _links(0, form == "graph", copy=False)
        if beside != "nothing":
            launches += _links(1, form == "graph", copy=beside == "chain of other code")
        gap_ns, kernel_ns = self._gaps(launches, LINKS)
        return {
            "what": "chain",
            "form": form,
            "beside": beside,
            "n": LINKS,
            "kernel_us": kernel_ns / 1e3,
            "device_gap_ns": gap_ns,
        }

    def _gaps(self, launches: Sequence[StreamedKernel], count: int) -> tuple[float, float]:
        """The median time between the end of one and the start of the next of the first ``count`` launches, which are a
        stream's, and the median duration, ns."""
        gaps: list[int] = []
        durations: list[int] = []
        for _ in range(self._sizes.repetitions):
            run = self.gpu.run(launches)[:count]
            starts, ends = [int(one[:, 0].min()) for one in run], [int(one[:, 1].max()) for one in run]
            gaps += [start - end for end, start in zip(ends, starts[1:], strict=False)]
            durations += [end - start for start, end in zip(starts, ends, strict=True)]
        return float(np.median(gaps)), float(np.median(durations))


def _links(stream: int, graph: bool, copy: bool) -> list[StreamedKernel]:
    """A chain of small kernels in a stream."""
    links = [StreamedKernel(LINK, stream, graph=graph, copy=copy)] * LINKS
    return [replace(links[0], delay_us=SOLO_DELAY_US), *links[1:]]


def _plain(kernel: Named) -> Spec:
    """The kernel without its id."""
    return Spec(**{name: getattr(kernel, name) for name in Spec.__struct_fields__})


def known_sets() -> tuple[str, ...]:
    """Names of the files of synthetic kernels, in the order in which they are recorded."""
    return (KERNELS, WAVES, LAUNCH, *KERNEL_SETS)
