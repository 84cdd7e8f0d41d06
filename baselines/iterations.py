"""Which recorded iteration each job repeats: what only clairvoyant schedulers are told."""

from __future__ import annotations

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem


class Iterations:
    """Draws as the hosts of an episode do."""

    def __init__(self, truth: Problem, seed: int) -> None:
        """``truth`` and ``seed``: what a clairvoyant scheduler sees."""
        # Brings in Numba, which a list of schedulers does not need.
        from gpusched_env.workload.host import RANDOM_STREAMS

        self._variants = [len(program.variants) for program in truth.programs]
        self._engines = [program.engine is not None for program in truth.programs]
        self._draws = [np.random.default_rng([seed, row, RANDOM_STREAMS[1]]) for row in range(len(truth.programs))]
        self._drawn: list[list[int]] = [[] for _ in truth.programs]

    def of(self, tenant: int, job: int) -> int:
        """The place of a job's iteration among the variants of its tenant's program.

        Raises:
            InputError: the tenant is a serving engine, whose steps come of who is there.
        """
        if self._engines[tenant]:
            raise InputError(
                "a tenant with batching has no iteration of each job that could be told beforehand; choose a scheduler "
                "that does not ask for it"
            )
        drawn = self._drawn[tenant]
        while len(drawn) <= job:
            # The host's factor is drawn after the iteration.
            iteration, _ = self._draws[tenant].random(2)
            drawn.append(int(iteration * self._variants[tenant]))
        return drawn[job]
