"""Predicts all recordings of a folder, in parallel: sets of kernels, pairs of networks, ablations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpusched_env.data import recorded_names
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.workers import run_tasks
from gpusched_env.experiments.reproduce.recordings import SCHEDULERS
from gpusched_env.experiments.validate.ablation import ALL_ON, EVERY, Variant, variants
from gpusched_env.experiments.validate.dataset import (
    KERNEL_SETS,
    MODEL_PAIRS,
    ModelPair,
    RecordedScenario,
    SyntheticKernel,
    read_kernels,
    read_model_pairs,
    read_scenarios,
)
from gpusched_env.experiments.validate.replay import Replay, network_alone_us, networks_together_us
from gpusched_env.experiments.validate.scoring import PairPrediction, Prediction
from gpusched_env.hardware.specs import GpuSpec, load_gpu


@dataclass(frozen=True, slots=True)
class Recordings:
    """What a folder holds."""

    folder: Path
    kernels: dict[str, SyntheticKernel]
    sets: dict[str, list[RecordedScenario]]
    """Of :data:`KERNEL_SETS`, those that the folder has."""
    model_pairs: list[ModelPair] | None
    """Those that can be simulated; ``None`` if the folder has no file of them."""
    skipped: list[str]
    """Why other pairs of networks are left out, one text a pair."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Predictions of a folder's recordings."""

    gpu: GpuSpec
    recordings: Recordings
    sets: dict[str, list[Prediction]]
    model_pairs: list[PairPrediction]
    ablation: dict[str, dict[str, list[Prediction]]] = field(default_factory=dict)
    """By what is off and set; the complete simulator comes first. Empty if not asked for."""


def read_recordings(folder: Path) -> Recordings:
    """All recordings of ``folder``.

    Raises:
        InputError: no folder, no kernels, no recordings, or an invalid row (with file, line and field).
    """
    kernels = read_kernels(folder)
    sets = {name: rows for name in KERNEL_SETS if (rows := read_scenarios(folder, name, kernels)) is not None}
    pairs = read_model_pairs(folder)
    if not sets and pairs is None:
        raise InputError(f"{folder}: has none of {', '.join((*KERNEL_SETS, MODEL_PAIRS))} (.jsonl or .jsonl.gz)")
    known = set(recorded_names())
    usable: list[ModelPair] = []
    skipped: list[str] = []
    for pair in pairs or []:
        unknown = [name for name in (pair.fg, pair.bg) if name not in known]
        if unknown:
            skipped.append(f"{pair.fg} and {pair.bg}: no shipped workload {unknown[0]!r}")
        elif pair.mode not in SCHEDULERS:
            skipped.append(f"{pair.fg} and {pair.bg}: unknown mode {pair.mode!r}; known are {', '.join(SCHEDULERS)}")
        else:
            usable.append(pair)
    return Recordings(folder, kernels, sets, usable if pairs is not None else None, skipped)


@dataclass(frozen=True, slots=True)
class _Job:
    """A simulation: of a scenario by a variant, of a pair of networks, or of a network alone."""

    what: RecordedScenario | ModelPair | str
    set_name: str = MODEL_PAIRS
    variant: str = ALL_ON


class _Simulate:
    """The task of the worker processes; keeps the kernels that it solved."""

    def __init__(self, kernels: dict[str, SyntheticKernel], gpu: GpuSpec, variants_: dict[str, Variant]) -> None:
        self._kernels = kernels
        self._gpu = gpu
        self._variants = variants_
        self._replays: dict[str, Replay] = {}

    def __call__(self, job: _Job) -> Any:
        if isinstance(job.what, str):
            return network_alone_us(job.what, self._gpu.name)
        if isinstance(job.what, ModelPair):
            return networks_together_us(job.what, self._gpu.name)
        if job.variant not in self._replays:
            variant = self._variants[job.variant]
            self._replays[job.variant] = Replay(self._kernels, variant.gpu, variant.mechanisms)
        prediction = self._replays[job.variant].predict(job.what)
        return prediction.start_us, prediction.end_us


class ValidationRun:
    """The simulations that a validation needs, counted before they run."""

    def __init__(self, recordings: Recordings, gpu: str, *, ablation: bool = False) -> None:
        """Raises ``InputError`` for an unknown GPU."""
        self.recordings = recordings
        self.gpu = load_gpu(gpu)
        self._variants = {ALL_ON: Variant(self.gpu)} | (variants(self.gpu) if ablation else {})
        pairs = recordings.model_pairs or []
        networks = sorted({name for pair in pairs for name in (pair.fg, pair.bg)})
        # The longest first, so that no worker is left with one at the end.
        self._jobs = [*(_Job(pair) for pair in pairs), *(_Job(name) for name in networks)]
        for variant in self._variants:
            for name, scenarios in recordings.sets.items():
                every = 1 if variant == ALL_ON else EVERY.get(name, 1)
                self._jobs += [_Job(scenario, name, variant) for scenario in scenarios[::every]]

    def __len__(self) -> int:
        return len(self._jobs)

    def run(self, workers: int = 1, on_progress: Callable[[int, float], None] | None = None) -> Validation:
        """Simulate everything; ``on_progress`` is called with the number done and its share."""
        task = _Simulate(self.recordings.kernels, self.gpu, self._variants)
        results: list[Any] = [None] * len(self)
        for done, (index, result) in enumerate(run_tasks(task, self._jobs, workers), start=1):
            results[index] = result
            if on_progress is not None:
                on_progress(done, done / len(self))
        return self._collect(results)

    def _collect(self, results: list[Any]) -> Validation:
        by_variant: dict[str, dict[str, list[Prediction]]] = {
            variant: {name: [] for name in self.recordings.sets} for variant in self._variants
        }
        alone_us: dict[str, float] = {}
        together: list[tuple[ModelPair, tuple[float, float]]] = []
        for job, result in zip(self._jobs, results, strict=True):
            if isinstance(job.what, str):
                alone_us[job.what] = result
            elif isinstance(job.what, ModelPair):
                together.append((job.what, result))
            else:
                by_variant[job.variant][job.set_name].append(Prediction(job.what, *map(np.asarray, result)))
        pairs = [PairPrediction(p, fg / alone_us[p.fg], bg / alone_us[p.bg]) for p, (fg, bg) in together]
        sets = by_variant[ALL_ON]
        # The complete simulator on the scenarios that the ablation ran, for comparison.
        sampled = {ALL_ON: {name: rows[:: EVERY.get(name, 1)] for name, rows in sets.items()}}
        ablation = by_variant | sampled if len(by_variant) > 1 else {}
        return Validation(self.gpu, self.recordings, sets, pairs, ablation)
