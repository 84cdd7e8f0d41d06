"""Predicts all recordings of a folder, in parallel: sets of kernels, pairs of networks, ablations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from gpusched_env.experiments.lib.recorded import graph_turnarounds_us
from gpusched_env.experiments.lib.workers import Progress, Shared, run_all
from gpusched_env.experiments.validate.recordings import RecordedScenario, Recordings
from gpusched_env.experiments.validate.replay import Replay
from gpusched_env.experiments.validate.scoring import PairPrediction, Prediction
from gpusched_env.hardware.specs import GpuSpec, load_gpu

ALL_ON = "everything on"
EVERY = {"sequences": 5}
"""Of these sets an ablation runs only every n-th scenario."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Predictions of a folder's recordings."""

    gpu: GpuSpec
    recordings: Recordings
    sets: dict[str, list[Prediction]]
    model_pairs: list[PairPrediction]
    ablation: dict[str, dict[str, list[Prediction]]] = field(default_factory=dict)
    """By what is off and set; the complete simulator comes first. Empty if not asked for."""


class ValidationRun:
    """The simulations that a validation needs, counted before they run."""

    def __init__(self, recordings: Recordings, gpu: str, *, ablation: bool = False) -> None:
        """Plan them.

        Args:
            recordings: what is predicted.
            gpu: name, or path of a specification.
            ablation: also with each mechanism switched off.

        Raises:
            InputError: unknown GPU.
        """
        self.recordings = recordings
        self.gpu = load_gpu(gpu)
        self._pairs = recordings.model_pairs or []
        self._networks = sorted({name for pair in self._pairs for name in (pair.fg, pair.bg)})
        # The longest first, so that no worker is left with one at the end.
        self._jobs: list[Callable[[], Any]] = [
            *(partial(graph_turnarounds_us, [pair.fg, pair.bg], pair.mode, gpu) for pair in self._pairs),
            *(partial(graph_turnarounds_us, [name], "streams", gpu) for name in self._networks),
        ]
        complete = Replay(recordings.kernels, self.gpu)
        self._scenarios: dict[tuple[str, str], list[RecordedScenario]] = {}
        """By what is off and set."""
        for variant, replay in {ALL_ON: complete, **(complete.ablations() if ablation else {})}.items():
            shared = Shared(replay)
            for name, scenarios in recordings.sets.items():
                chosen = scenarios[:: 1 if variant == ALL_ON else EVERY.get(name, 1)]
                self._scenarios[variant, name] = chosen
                self._jobs += [partial(_predict, shared, scenario) for scenario in chosen]

    def __len__(self) -> int:
        return len(self._jobs)

    def run(self, workers: int | None = 1, on_progress: Progress | None = None) -> Validation:
        """Simulate everything; ``on_progress`` is called with the number done and its share."""
        results = iter(run_all(operator.call, self._jobs, workers, on_progress))
        together = list(islice(results, len(self._pairs)))
        alone = {name: us for name, (us,) in zip(self._networks, islice(results, len(self._networks)), strict=True)}
        pairs = [
            PairPrediction(pair, fg / alone[pair.fg], bg / alone[pair.bg])
            for pair, (fg, bg) in zip(self._pairs, together, strict=True)
        ]
        found: dict[str, dict[str, list[Prediction]]] = {}
        for (variant, name), scenarios in self._scenarios.items():
            found.setdefault(variant, {})[name] = list(islice(results, len(scenarios)))
        sets = found.get(ALL_ON, {})
        # The complete simulator on the scenarios that the ablation ran, for comparison.
        sampled = {ALL_ON: {name: rows[:: EVERY.get(name, 1)] for name, rows in sets.items()}}
        return Validation(self.gpu, self.recordings, sets, pairs, found | sampled if len(found) > 1 else {})


def _predict(replay: Shared[Replay], scenario: RecordedScenario) -> Prediction:
    """What worker processes do; each solves the kernels that it meets once."""
    return replay.value.predict(scenario)
