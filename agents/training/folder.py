"""The folder of a training: what lies in it, how it is written, and who may read it.

A checkpoint is pickled, and to unpickle a file is to run whatever code its author put there. So it is signed with a
secret of the user who writes it, and read without further question only with the same signature. All else is YAML, JSON
and numbers.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import pickle
import secrets
import tempfile
import textwrap
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from gpusched_env.agents.files import replacing
from gpusched_env.agents.training.config import Training
from gpusched_env.errors import InputError
from gpusched_env.reading import ARCHIVE_ERRORS, checked, decoded, opened, parse_yaml, read_bytes, read_text
from gpusched_env.scenarios.games import load_room, rooms_of

CONFIG = "config.yaml"
BEST, EXPORTED, FINAL = "best.zip", "best.npz", "final.zip"
VALIDATION, RESULT = "validation.json", "result.json"
BOARD, CHECKPOINTS = "tensorboard", "checkpoints"
MADE = (CONFIG, BEST, EXPORTED, FINAL, VALIDATION, RESULT, BOARD, CHECKPOINTS)
"""Everything that a training leaves in its folder."""
KEPT = 2
"""Checkpoints that are kept: the last ones."""


def policy_file(path: Path) -> Path:
    """The file of a trained policy: ``path`` itself, or the best one in the folder of a training.

    Raises:
        InputError: there is none.
    """
    if path.is_dir():
        for name in (EXPORTED, BEST):
            if (path / name).is_file():
                return path / name
        raise InputError(f"{path}: is not the folder of a training, it has no {EXPORTED} or {BEST}")
    if not path.is_file():
        raise InputError(f"{path}: no such file; name a folder of gpusched train, or a .npz or .zip in it")
    return path


# ---- config.yaml, validation.json, result.json ----------------------------------------------------------


class _Provenance(msgspec.Struct):
    command: str = ""
    versions: dict[str, str] = {}
    made: dict[str, Any] = {}


class _Config(msgspec.Struct):
    """The content of ``config.yaml``."""

    training: dict[str, Any]
    """Fields of the training, as its class has them."""
    provenance: _Provenance


class CurveEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a learning curve."""

    timesteps: int
    cost: float
    """Mean over the validation episodes."""
    costs: list[float]
    """Costs of each validation episode, by training variant and then seed."""
    best: bool
    """Whether it was the best so far."""


class LearningCurve(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``validation.json``."""

    seeds: list[int]
    """Seeds of the validation episodes, in the order of their costs."""
    baselines: dict[str, float]
    """Mean costs of hand-written schedulers on the same episodes."""
    validations: list[CurveEntry]
    kept: list[str] = []
    """Names of the files of the best policy."""


class TrainingResult(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``result.json``."""

    timesteps: int
    train_s: float
    stopped: bool
    """Whether its watcher ended it early."""
    best: CurveEntry
    """The validation of the model that was kept."""
    final: CurveEntry
    baselines: dict[str, float]


def write_json(content: msgspec.Struct | dict[str, Any], path: Path) -> None:
    """Write indented JSON, whole or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def note_baselines(folder: Path, baselines: dict[str, float]) -> None:
    """Write mean costs of other schedulers beside what a complete training came to."""
    for name, kind in ((VALIDATION, LearningCurve), (RESULT, TrainingResult)):
        path = folder / name
        noted = decoded(read_bytes(path), kind, f"{path}: not what a training wrote")
        write_json(msgspec.structs.replace(noted, baselines=baselines), path)


def write_config(config: Training, provenance: dict[str, Any], path: Path) -> None:
    """Write ``config.yaml``: the configuration, and what it ran with (versions, hashes of sources, command line)."""
    import yaml

    with replacing(path) as partial:
        content = {"training": msgspec.to_builtins(config), "provenance": provenance}
        partial.write_text(yaml.safe_dump(content, sort_keys=False))


def read_config(path: Path) -> Training:
    """The configuration in a ``config.yaml``.

    Raises:
        InputError: the file cannot be read, or is not one.
    """
    return _read_config(path)[0]


def _read_config(path: Path) -> tuple[Training, _Provenance]:
    where = f"{path}: not the configuration of a training"
    found = checked(parse_yaml(read_text(path), where), _Config, where)
    kind: type[Training] = load_room(rooms_of(found.training.get("scenario")).trainer).config
    return checked(found.training, kind, where), found.provenance


def made_by(folder: Path) -> dict[str, Any]:
    """Hashes of what made the training in a folder; empty where that is not known, or was not the same all the time.

    Raises:
        InputError: its configuration cannot be read.
    """
    return _read_config(folder / CONFIG)[1].made if (folder / CONFIG).is_file() else {}


def differences(one: Training, other: Training) -> list[tuple[str, str, str]]:
    """Where two configurations differ: the path of a setting and its two values, shortened."""
    mine, theirs = (_flat(msgspec.json.decode(msgspec.json.encode(config))) for config in (one, other))
    return [
        (name, _told(mine, name), _told(theirs, name)) for name in mine | theirs if mine.get(name) != theirs.get(name)
    ]


def _told(values: dict[str, Any], name: str) -> str:
    return textwrap.shorten(str(values.get(name, "none")), 40, placeholder="...")


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Nested values by their path."""
    if not isinstance(values, dict):
        return {prefix: values}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}.{name}" if prefix else name)
    return found


def check_kept(folder: Path) -> None:
    """Find out whether the best policy that a training noted is there, whole.

    Raises:
        InputError: it is not.
    """
    file = folder / VALIDATION
    curve = decoded(read_bytes(file), LearningCurve, f"{file}: not what a training wrote")
    for name in curve.kept:
        try:
            with opened(folder / name) as found, zipfile.ZipFile(found) as archive:
                damaged = archive.testzip()
        except (InputError, *ARCHIVE_ERRORS) as error:
            damaged = str(error)
        if damaged:
            raise InputError(f"{folder / name}: the best policy so far is missing or damaged ({damaged}); {_AGAIN}")


_AGAIN = "put it back, or train into another folder"


@dataclass(frozen=True, slots=True)
class Record:
    """What a training leaves on record."""

    folder: Path
    config: Training
    command: str
    """The command that trained; empty where it was not noted."""
    versions: dict[str, str]
    made: dict[str, Any]
    """Hashes of what made it, as in results of rankings; empty where that is not known, or was not the same all the
    time."""
    curve: LearningCurve

    @property
    def best(self) -> CurveEntry:
        """The validation of the model that was kept."""
        return min(self.curve.validations, key=lambda point: point.cost)


def read_record(folder: Path) -> Record:
    """The record in the folder of a training.

    Raises:
        InputError: it is none, or has no validation yet.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: is not the folder of a training, it has no {CONFIG}")
    path, (config, noted) = folder / VALIDATION, _read_config(folder / CONFIG)
    curve = decoded(read_bytes(path), LearningCurve, f"{path}: not the learning curve of a training")
    if not curve.validations:
        raise InputError(f"{path}: has no validation yet")
    return Record(folder, config, noted.command, noted.versions, noted.made, curve)


# ---- checkpoints ------------------------------------------------------------------------------------------


class Checkpoints:
    """The checkpoints of a training, by timesteps. A file is a pickle, and its signature in the last 32 bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """Timesteps of the complete checkpoints, in order."""
        if not self.folder.is_dir():
            return []
        return sorted(int(found.name) for found in self.folder.iterdir() if found.name.isdigit() and found.is_file())

    def file(self, timesteps: int) -> Path:
        """The file of a checkpoint."""
        return self.folder / f"{timesteps:012d}"

    def write(self, timesteps: int, state: dict[str, Any]) -> None:
        """Write a checkpoint, and drop all but the last ones. A kill meanwhile leaves those that were there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.file(timesteps).exists():
            return
        with replacing(self.file(timesteps)) as partial, partial.open("w+b") as file:
            pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)
            length = file.tell()
            file.write(_signature(file, length) or bytes(SIGNATURE))
        for step in self.steps()[:-KEPT]:
            self.file(step).unlink()

    def last(self, *, trust: bool = False) -> dict[str, Any]:
        """The state in the last checkpoint; there has to be one.

        Args:
            trust: whether it is read whoever wrote it.

        Raises:
            InputError: it was not written by this user, or it cannot be told.
        """
        path = self.file(self.steps()[-1])
        with opened(path) as file:
            length = max(0, path.stat().st_size - SIGNATURE)
            expected = _signature(file, length)
            if not trust and (expected is None or not hmac.compare_digest(expected, file.read())):
                raise InputError(
                    f"{path}: was not written, or not last changed, by you on this machine, and to go on from it is to "
                    "run whatever code is in it. If you trust its author, say so: --trust (in Python trust=True)"
                )
            file.seek(0)
            try:
                state: dict[str, Any] = pickle.load(file)
            except Exception as error:  # Whatever a damaged pickle leads to.
                raise InputError(f"{path}: is damaged ({error}); remove it to go on from the one before") from error
            return state


SIGNATURE = 32
"""Bytes of a signature."""


def _signature(file: BinaryIO, length: int) -> bytes | None:
    """Signature of the first ``length`` bytes, which it reads, with this user's secret; ``None`` without one."""
    key = _secret()
    if key is None:
        return None
    code = hmac.new(key, digestmod="sha256")
    file.seek(0)
    while part := file.read(min(length, 1 << 20)):
        code.update(part)
        length -= len(part)
    return code.digest()


def _secret() -> bytes | None:
    """32 random bytes in ``gpusched/secret`` below the user's state folder, made at first use."""
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "gpusched"
        path = folder / "secret"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=folder) as new:
                new.write(secrets.token_bytes(SIGNATURE))
                new.flush()
                # Whole at once, and never in the place of one that another process has made meanwhile.
                with contextlib.suppress(FileExistsError):
                    os.link(new.name, path)
        key = path.read_bytes()
        return key if len(key) == SIGNATURE else None
    except (OSError, RuntimeError):  # RuntimeError: there is no home.
        return None
