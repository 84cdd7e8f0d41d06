"""From the folder of a training to an agent that comes with the package."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.manifest import Manifest, Step, ValidationCost, encode_manifest, file_hash
from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.record import Record, read_record
from gpusched_env.agents.training.results import EXPORTED
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario


def ship(folders: Sequence[Path], into: Path) -> Manifest:
    """Copy the best policy of a training into ``into``, and write its manifest beside it.

    Args:
        folders: of the trainings that led to it, in order; the policy is that of the last.
        into: the folder of shipped agents.

    Raises:
        InputError: a folder is none of a training, the last has no exported policy, or that does not fit the
            scenario of its name. Nothing is written then.
    """
    if not into.is_dir():
        raise InputError(f"{into}: is not a folder; agents are shipped in agents/trained of a checkout")
    records = [read_record(folder) for folder in folders]
    last = records[-1]
    policy = last.folder / EXPORTED
    if not policy.is_file():
        raise InputError(f"{last.folder} has no {EXPORTED}; recurrent policies cannot be shipped")
    name = last.config.scenario.name
    ExportedPolicy.load(policy).layout_for(load_scenario(name))
    manifest = Manifest(
        scenario=name,
        sha256=file_hash(policy),
        trainings=tuple(map(_step, records)),
        validation=ValidationCost(
            cost=last.best.cost,
            timesteps=last.best.timesteps,
            episodes=len(last.best.costs),
            baselines=last.curve.baselines,
        ),
    )
    with replacing(into / f"{name}.npz") as partial:
        shutil.copyfile(policy, partial)
    with replacing(into / f"{name}.json") as partial:
        partial.write_bytes(encode_manifest(manifest))
    return manifest


def _step(record: Record) -> Step:
    return Step(
        command=record.command,
        seed=record.config.seed,
        timesteps=record.curve.validations[-1].timesteps,
        versions=record.versions,
    )
