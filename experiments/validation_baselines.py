"""What hand-written schedulers cost on the episodes that a training is validated on."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpusched_env.agents.files import replacing, writing_to
from gpusched_env.agents.training.config import Training
from gpusched_env.baselines.spec import split_specs
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Validation
from gpusched_env.experiments.games.registry import game_of
from gpusched_env.experiments.lib.terminal import progress_bar
from gpusched_env.reading import decoded, read_bytes

STORED = "baselines.json"


class _Stored(msgspec.Struct, kw_only=True):
    """``baselines.json``: costs by scheduler, and of which episodes."""

    seeds: list[int]
    scenarios: list[str]
    costs: dict[str, float]


def baseline_costs(config: Training, schedulers: str, out: Path) -> dict[str, float]:
    """Mean costs by scheduler, over all validation episodes of all training variants.

    They are kept in ``out``, so that a training that goes on does not simulate them again.

    Args:
        config: says what is validated on: a scenario, its variants, the number of validation seeds.
        schedulers: names, separated by commas; ``all`` that are registered, run on a GPU of today and know no more than
            a scheduler can, or ``none``.
        out: folder of the training.

    Raises:
        InputError: unknown scheduler, or a clairvoyant one.
    """
    if schedulers == "none":
        return {}
    game = game_of(config.scenario)
    names = game.baselines(config) if schedulers == "all" else split_specs(schedulers)
    bounds = [name for name in names if game.sees_truth(name)]
    if bounds:
        raise InputError(f"{', '.join(bounds)}: is told the truth, and no baseline for an agent that is not")
    validation = game.validation(config)
    known = _known(out, validation)
    missing = [name for name in names if name not in known]
    if missing:
        with progress_bar(len(missing) * validation.episodes, "baseline episode", "baselines") as tell:
            costs = validation.costs(missing, tell)
        known |= {name: game.mean(costs[name]) for name in missing}
        _store(out, validation, known)
    return {name: known[name] for name in names}


def _known(out: Path, validation: Validation) -> dict[str, float]:
    """What is stored of these episodes."""
    path = out / STORED
    if not path.is_file():
        return {}
    stored = decoded(read_bytes(path), _Stored, f"{path}: not what a training wrote, remove it")
    same = (stored.seeds, stored.scenarios) == (validation.seeds, validation.problems)
    return stored.costs if same else {}


def _store(out: Path, validation: Validation, costs: dict[str, float]) -> None:
    content = _Stored(seeds=validation.seeds, scenarios=validation.problems, costs=costs)
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / STORED) as partial:
            partial.write_bytes(msgspec.json.encode(content))
