"""The training: CMA-ES searches the network's weights on generated training mixes.

``python -m gpusched_env.agents.shared_memory.searching --out FILE`` writes the weights. The shipped ones came so, and
then by a grid of three numbers that say how careful the network is (``--adjust FILE``). A generation plays the same
mixes with each candidate. A candidate's cost on a mix counts relative to a fixed budget's, so that mixes count alike.
Every few generations the mean is validated on training mixes that are never drawn, and the best validated mean is kept.
Held-out mixes are never played.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.shared_memory.learned import (
    HIDDEN,
    INPUTS,
    WEIGHTS,
    Singles,
    mix_problem,
    play_mixes,
    read_weights,
)
from gpusched_env.scenarios.problem import Problem

SIGMA: Final = 0.5
POPULATION: Final = 20
MIXES: Final = 12
VALIDATED_ON: Final = range(100_000, 100_040)
"""Seeds of mixes that no generation draws."""
VALIDATE_EVERY: Final = 5
ADJUSTED_ON: Final = range(200_000, 200_060)
"""Seeds of the mixes that :func:`adjust` tries weights on; no generation draws them either."""
NUMBERS: Final = (0.0, -0.4, -0.8, -1.2)
SPARES: Final = (0.0, 0.15, 0.3)
FACTORS: Final = (1.0, 1.6)
"""What :func:`adjust` tries."""
SPARE: Final = 5
"""Input of :func:`~gpusched_env.agents.shared_memory.learned.inputs`: time to spare over what a frame needs."""
UNIT: Final = 10.0
"""Cost, ms of a core, that is added to a fixed budget's before one is divided by it: some mixes need no budget."""


def constant(number: float) -> Singles:
    """Weights of a network that gives every core one budget."""
    weights = np.zeros(WEIGHTS, np.float32)
    weights[-1] = number
    return weights


MIDDLE: Final = 0.7
"""Number of 16384 misses a period, which costs least of all fixed budgets on training mixes."""


def relative(costs: NDArray[np.float64], fixed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs over those of a fixed budget, of mixes in the last axis."""
    found: NDArray[np.float64] = (costs + UNIT) / (fixed + UNIT)
    return found


def search(out: Path, minutes: float, seed: int = 0) -> None:
    """Search for a while, and keep the best weights in ``out``."""
    from cmaes import CMA  # Takes a second to load, and who plays needs none.

    began = time.monotonic()
    optimiser = CMA(mean=constant(MIDDLE).astype(np.float64), sigma=SIGMA, population_size=POPULATION, seed=seed)
    validation = [mix_problem(each) for each in VALIDATED_ON]
    fixed, _ = play_mixes(constant(MIDDLE), validation)
    best, decisions, generation = np.inf, 0, 0
    while time.monotonic() - began < 60.0 * minutes:
        if generation % VALIDATE_EVERY == 0:
            costs, _ = play_mixes(optimiser._mean.astype(np.float32), validation)
            found = float(relative(costs, fixed).mean())
            print(f"{generation} {time.monotonic() - began:.0f} s {costs.mean():.1f} {found:.4f}", flush=True)
            if found < best:
                best = found
                about = {"seed": seed, "generations": generation, "decisions": decisions, "validated": found}
                _write(out, optimiser._mean, about)
        rng = np.random.default_rng((seed, generation))
        problems = [mix_problem(int(each)) for each in rng.integers(VALIDATED_ON.start, size=MIXES)]
        candidates = [optimiser.ask() for _ in range(POPULATION)]
        costs, played = _costs(candidates, problems)
        decisions += played
        optimiser.tell([(each, float(cost)) for each, cost in zip(candidates, costs, strict=True)])
        generation += 1


def adjusted(weights: Singles, number: float, spare: float, factor: float) -> Singles:
    """Weights of a network that is more or less careful.

    Args:
        weights: of the network.
        number: what is added to its number.
        spare: by how much the time that a frame has to spare, over what it needs, counts less.
        factor: on its number.
    """
    found = weights.copy()
    first = found[: INPUTS * HIDDEN].reshape(INPUTS, HIDDEN)
    found[INPUTS * HIDDEN :][:HIDDEN] -= spare * first[SPARE]
    found[-HIDDEN - 1 :] *= factor
    found[-1] += number
    return found


def adjust(out: Path, path: Path) -> None:
    """Try how careful the weights in a file should be, and write the best."""
    weights = read_weights(path)
    grid = list(itertools.product(NUMBERS, SPARES, FACTORS))
    costs, _ = _costs([adjusted(weights, *each) for each in grid], [mix_problem(each) for each in ADJUSTED_ON])
    for each, cost in zip(grid, costs, strict=True):
        print(*each, round(float(cost), 4), flush=True)
    best = int(costs.argmin())
    _write(out, adjusted(weights, *grid[best]), {"adjusted_by": grid[best], "costs": float(costs[best])})


def _costs(candidates: list[Any], problems: list[Problem]) -> tuple[NDArray[np.float64], int]:
    """Costs of candidates on the same mixes, relative to a fixed budget, and the decisions these took."""
    each = np.array([constant(MIDDLE), *candidates], np.float32)
    costs, played = play_mixes(np.repeat(each, len(problems), axis=0), problems * len(each))
    fixed, *others = costs.reshape(len(each), len(problems))
    return relative(np.array(others), fixed).mean(axis=1), played


def _write(out: Path, weights: NDArray[Any], about: dict[str, Any]) -> None:
    rounded = [float(f"{weight:.6g}") for weight in weights]
    out.write_text(json.dumps({**about, "weights": rounded}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--adjust", type=Path, help="weights of a search, of which only is tried how careful they should be"
    )
    given = parser.parse_args()
    if given.adjust is None:
        search(given.out, given.minutes, given.seed)
    else:
        adjust(given.out, given.adjust)
