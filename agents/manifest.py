"""Where a shipped agent comes from: the file ``<Scenario>.json`` beside its ``<Scenario>.npz``."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.agents.files import replacing, writing_to
from gpusched_env.agents.training.folder import EXPORTED, Record, read_record
from gpusched_env.agents.training.trainer import trainer_of
from gpusched_env.errors import InputError
from gpusched_env.reading import decoded, read_bytes

SHIP = "gpusched lab ship DIR writes both"


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One training on the way to an agent."""

    command: str
    seed: int
    timesteps: int
    """Decisions that it went on for."""
    versions: dict[str, str]
    """Versions of Python and of the packages that took part."""


class ValidationCost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the agent cost in the validation that it was chosen by."""

    cost: float
    """Mean cost over the episodes."""
    timesteps: int
    """Decisions of the last training before it."""
    episodes: Annotated[int, Meta(ge=1)]
    baselines: dict[str, float]
    """Mean costs of hand-written schedulers on the same episodes."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one agent comes from."""

    format: Literal["gpusched-agent"] = "gpusched-agent"
    version: Literal[1] = 1
    scenario: str
    also: tuple[str, ...] = ()
    """Scenarios that it was trained on besides, for which it is shipped as well."""
    sha256: str
    """Hash of the policy's file."""
    trainings: Annotated[tuple[Step, ...], Meta(min_length=1)]
    """Trainings that led to the policy, in order; the last one made it."""
    validation: ValidationCost


def encode_manifest(manifest: Manifest) -> bytes:
    """A manifest as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file.

    Raises:
        InputError: it cannot be read, or is none.
    """
    return decoded(read_bytes(path), Manifest, f"{path}: not the manifest of an agent ({SHIP})")


def check_agent(folder: Path, scenario: str) -> Manifest:
    """The manifest of an agent, if its policy is the one that the manifest is about, and fits the scenario.

    Raises:
        InputError: says what is missing or wrong.
    """
    policy, path = folder / f"{scenario}.npz", folder / f"{scenario}.json"
    manifest = read_manifest(path)
    if manifest.scenario != scenario:
        raise InputError(f"{path}: is about an agent for {manifest.scenario}; {SHIP}")
    found = file_hash(policy)
    if found != manifest.sha256:
        raise InputError(f"{policy}: has SHA-256 {found}, {path.name} is about {manifest.sha256}; {SHIP}")
    for name in (scenario, *manifest.also):
        trainer_of(name).check_policy(policy, name)
    return manifest


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
    name, also = last.config.name, tuple(getattr(last.config, "also", ()))
    for each in (name, *also):
        trainer_of(each).check_policy(policy, each)
    manifest = Manifest(
        scenario=name,
        also=also,
        sha256=file_hash(policy),
        trainings=tuple(map(_step, records)),
        validation=ValidationCost(
            cost=last.best.cost,
            timesteps=last.best.timesteps,
            episodes=len(last.best.costs),
            baselines=last.curve.baselines,
        ),
    )
    with writing_to(into), replacing(into / f"{name}.npz") as weights, replacing(into / f"{name}.json") as about:
        # Both are complete before one of them is put in its place.
        shutil.copyfile(policy, weights)
        about.write_bytes(encode_manifest(manifest))
    return manifest


def _step(record: Record) -> Step:
    return Step(
        command=record.command,
        seed=record.config.seed,
        timesteps=record.curve.validations[-1].timesteps,
        versions=record.versions,
    )


def file_hash(path: Path) -> str:
    """SHA-256 of a file, hexadecimal.

    Raises:
        InputError: it cannot be read.
    """
    return hashlib.sha256(read_bytes(path)).hexdigest()
