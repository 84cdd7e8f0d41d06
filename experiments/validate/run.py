"""Predicts all recordings of a folder, in parallel: sets of kernels, pairs of networks, ablations."""

from __future__ import annotations

from gpusched_env.experiments.lib.graph_pairs import graph_cells
from gpusched_env.experiments.lib.judged import Simulation, run_cells
from gpusched_env.experiments.lib.workers import Progress, Shared
from gpusched_env.experiments.validate.controls import CONTROLS
from gpusched_env.experiments.validate.recordings import Recordings
from gpusched_env.experiments.validate.replay import Predict, Replay
from gpusched_env.experiments.validate.results import Validation
from gpusched_env.experiments.validate.rivals import ends_of
from gpusched_env.experiments.validate.scoring import launches
from gpusched_env.experiments.validate.tables import ALL_ON, EVERY
from gpusched_env.hardware.specs import load_gpu


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
        self._pairs_on = {"gpu": gpu, "own": Shared(recordings.workloads)}
        made = {name: make(recordings.workloads) for name, make in CONTROLS.items()}
        self._controls_on = {name: {"gpu": gpu, "own": Shared(own)} for name, own in made.items() if own}
        complete = Replay(recordings.kernels, self.gpu)
        self._predictions: dict[str, dict[str, list[Predict]]] = {}
        """By what is off and set."""
        for variant, replay in {ALL_ON: complete, **(complete.ablations() if ablation else {})}.items():
            shared = Shared(replay)
            self._predictions[variant] = {
                name: [Predict(shared, row) for row in rows[:: 1 if variant == ALL_ON else EVERY.get(name, 1)]]
                for name, rows in recordings.sets.items()
            }
        # The longest first, so that no worker is left with one at the end.
        self._cells: list[Simulation] = [
            *graph_cells(recordings.model_pairs or [], **self._pairs_on),
            *(cell for on in self._controls_on.values() for cell in graph_cells(recordings.model_pairs or [], **on)),
            *(cell for sets in self._predictions.values() for cells in sets.values() for cell in cells),
        ]

    def __len__(self) -> int:
        return len(self._cells)

    def run(self, workers: int | None = 1, on_progress: Progress | None = None) -> Validation:
        """Simulate everything; ``on_progress`` is called with the number done and its share."""
        found = run_cells(self._cells, workers=workers, on_progress=on_progress)
        recorded = self.recordings.model_pairs or []
        pairs = [(pair, pair.simulated(found, **self._pairs_on)) for pair in recorded]
        controls = {
            name: [(pair, pair.simulated(found, **on)) for pair in recorded] for name, on in self._controls_on.items()
        }
        by_variant = {
            variant: launches({name: [(cell.scenario, found[cell]) for cell in cells] for name, cells in sets.items()})
            for variant, sets in self._predictions.items()
        }
        everything = by_variant.pop(ALL_ON)
        rivals = ends_of(self.recordings.sets, self.recordings.kernels, self.gpu.sms)
        return Validation(self.gpu, self.recordings, everything.join(rivals), pairs, by_variant, controls)
