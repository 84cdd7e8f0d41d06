"""Files of policies: arrays of float32, and what they belong to as JSON.

Rules of other games have files of the same kind.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gpusched_env.agents.files import replacing
from gpusched_env.agents.policies.new_columns import with_new_columns
from gpusched_env.agents.policies.sizes import AnyRule, MlpSizes, Shapes, Sizes, SlotSizes
from gpusched_env.display.words import counted
from gpusched_env.envs.action_fields import BUDGETS, LEAST_INTERVAL_US, PAUSES, QUARTERS
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.features import TABLES
from gpusched_env.errors import InputError
from gpusched_env.reading import ARCHIVE_ERRORS, decoded, opened

METADATA = "metadata"
"""The archive's member with the JSON, as bytes; the others are named as :meth:`Sizes.shapes` says."""

LONGEST_US = 1e9
"""The longest wait or interval that a file may have."""
Weights = dict[str, NDArray[np.float32]]


class PolicyInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an exported policy is, and where it comes from."""

    format: Literal["gpusched-policy"] = "gpusched-policy"
    version: Literal[1] = 1
    network: Sizes
    columns: dict[str, tuple[str, ...]]
    """Names of the columns of every table of an observation, in order."""
    actions: ActionLayout
    """Actions of the environment it was trained in."""
    wait_us: Annotated[float, Meta(gt=0, le=LONGEST_US)]
    """Longest wait of action 0 in that environment."""
    masked: bool
    """Whether only legal actions compete. Otherwise an illegal action that wins is a wait, as in the environment."""
    algorithm: str
    scenario: str
    """Name of the scenario it was trained on."""
    command: str = ""
    """The command that trained it."""
    seed: int | None = None
    """Seed of the training."""
    timesteps: int = 0
    """Decisions that it was trained for."""
    versions: dict[str, str] = {}
    """Versions of the packages that took part, at the export."""

    def summary(self) -> str:
        """One line about the policy."""
        trained = f"{counted(self.timesteps, 'decision')} of {self.scenario}"
        return f"{self.algorithm} with policy {kind(self.network)}, {trained}"


def kind(network: Sizes) -> str:
    """The name of a network's kind: ``mlp``, ``slots``, ``rule``, ``release``, ``serve``, ``pairs`` or
    ``knobs``."""
    return str(network.__struct_config__.tag)


def current_columns() -> dict[str, tuple[str, ...]]:
    """The columns that observations have now."""
    return {name: tuple(feature.name for feature in features) for name, features in TABLES.items()}


def write_policy(path: str | Path, info: PolicyInfo, weights: Weights) -> None:
    """Write a policy's file, whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    write_members(path, msgspec.json.encode(info), weights)


def write_members(path: str | Path, metadata: bytes, weights: Weights) -> None:
    """Write an archive of JSON and weights, whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    text = np.frombuffer(metadata, np.uint8)
    try:
        with replacing(Path(path)) as partial, partial.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **{METADATA: text}, **weights)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def read_policy(path: str | Path) -> tuple[PolicyInfo, Weights]:
    """What :func:`write_policy` wrote, checked. A slot network that is older than some columns does not read these.

    Raises:
        InputError: the file cannot be read, is no exported policy, was made for other observations, or lacks weights.
    """
    members = read_members(Path(path))
    if METADATA not in members:
        raise InputError(f"{path}: no exported policy (no {METADATA!r} in it); {_HOW}")
    info = decoded(members.pop(METADATA).tobytes(), PolicyInfo, f"{path}: no exported policy that this version reads")
    if isinstance(info.network, SlotSizes):
        now = current_columns()
        widened = with_new_columns(members, info.columns, now)
        if widened is not members:
            info, members = msgspec.structs.replace(info, columns=now), widened
    try:
        check_columns(info)
        check_actions(info.actions)
        check_sizes(info)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return info, checked_weights(members, info.network.shapes(info.actions), str(path))


def checked_weights(members: Weights, shapes: Shapes, where: str) -> Weights:
    """The weights of these names.

    Raises:
        InputError: one is missing, or not finite float32 of its shape.
    """
    for name, shape in shapes.items():
        if name not in members:
            raise InputError(f"{where}: weights {name} are missing")
        array = members[name]
        if array.shape != shape or array.dtype != np.float32:
            raise InputError(
                f"{where}: weights {name} are {array.dtype} of shape {array.shape}, not float32 of {shape}"
            )
        if not np.isfinite(array).all():
            raise InputError(f"{where}: weights {name} are not all finite")
    return {name: members[name] for name in shapes}


MOST_BYTES = 2**28
"""The most bytes of a policy's arrays: what a small file can expand to is refused before it is read."""
MOST = 65_536
"""The most rows of observations, streams and other parts that an action space is made of."""
MOST_ACTIONS = 1_048_576
"""The most actions of an action space."""
_HOW = "gpusched_env.agents.model_file.export_policy writes one from a trained model"


def read_members(path: Path) -> Weights:
    """The arrays of an archive; nothing is unpickled.

    Raises:
        InputError: it cannot be read, is no archive of a policy, or has more than :data:`MOST_BYTES`.
    """
    try:
        with opened(path) as file:
            if not zipfile.is_zipfile(file):
                raise InputError(f"{path}: no exported policy (no archive); {_HOW}")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            if "policy.pth" in archive.files:
                raise InputError(f"{path}: a model of stable-baselines3, no exported policy; {_HOW}")
            assert archive.zip is not None, "it is open"
            size = sum(member.file_size for member in archive.zip.infolist())
            if size > MOST_BYTES:
                raise InputError(f"{path}: its arrays are {size} bytes, must be at most {MOST_BYTES}")
            return {name: archive[name] for name in archive.files}
    except ARCHIVE_ERRORS as error:
        raise InputError(f"{path}: no exported policy ({error}); {_HOW}") from error


def check_actions(actions: ActionLayout) -> None:
    """Refuse actions that no environment has.

    Raises:
        InputError: a count below its least, or one beyond :data:`MOST`; partition sizes, pauses or budgets other than
            on offer; more than :data:`MOST_ACTIONS`.
    """
    least = {"slots": 1, "running_slots": 0, "lookahead": 1, "streams": 0, "core_slots": 0}
    for name, lowest in least.items():
        if not lowest <= getattr(actions, name) <= MOST:
            raise InputError(f"its actions have {name} {getattr(actions, name)}, must be {lowest} to {MOST}")
    priorities = actions.stream_priorities
    if len(set(priorities)) != len(priorities) or any(abs(priority) > MOST for priority in priorities):
        raise InputError(f"its actions have the stream priorities {priorities}, must differ, and none beyond {MOST}")
    if actions.quarters not in ((), QUARTERS):
        raise InputError(f"its actions have the partition sizes {actions.quarters}, must be {QUARTERS} or none")
    if actions.pauses not in ((), PAUSES):
        raise InputError(f"its actions have the pauses {actions.pauses}, must be {PAUSES} or none")
    if actions.budgets not in ((), BUDGETS) or bool(actions.budgets) != (actions.core_slots > 0):
        raise InputError(
            f"its actions have the budgets {actions.budgets} for {actions.core_slots} cores, must be {BUDGETS} or none"
        )
    if len(set(actions.modes)) != len(actions.modes):
        raise InputError(f"its actions have the preemption modes {actions.modes}, of which one is there twice")
    if not (actions.interval_us == 0.0 or LEAST_INTERVAL_US <= actions.interval_us <= LONGEST_US):
        raise InputError(
            f"its actions have interval_us {actions.interval_us:g}, must be 0 or {LEAST_INTERVAL_US:g} to "
            f"{LONGEST_US:g} us"
        )
    if bool(priorities) != (actions.interval_us == 0.0):
        raise InputError(f"its actions have interval_us {actions.interval_us:g} and stream priorities {priorities}")
    for what, each in (
        ("launches", max(1, len(priorities)) * (1 + actions.streams)),
        ("synchronisations", actions.choices("synchronise") if actions.pending_slots <= MOST else 1),
    ):
        count = actions.pending_slots * each
        if count > MOST_ACTIONS:
            raise InputError(f"its actions are {count} {what}, must be at most {MOST_ACTIONS}")


def check_sizes(info: PolicyInfo) -> None:
    """Refuse a network that was not made for the policy's own actions: compiled code goes by its sizes.

    Raises:
        InputError: names the first size that differs, or why such a network has no such actions.
    """
    network = info.network
    fitted = network.fitted(info.actions)
    for name in network.__struct_fields__:
        if getattr(network, name) != getattr(fitted, name):
            raise InputError(f"its network has {name} {getattr(network, name)}, its actions {getattr(fitted, name)}")
    if isinstance(network, MlpSizes) and sorted(network.inputs) != sorted(TABLES):
        raise InputError(f"its network reads {', '.join(network.inputs)}, must read each of {', '.join(TABLES)} once")


def check_columns(info: PolicyInfo) -> None:
    """Refuse a policy that was made for other observations than there are now.

    Raises:
        InputError: names the first table and column that differ, or that the rule reads and did not have.
    """
    columns, now = info.columns, current_columns()
    if isinstance(info.network, AnyRule):
        for table, names in info.network.reads.items():
            missing = [name for name in names if name not in columns.get(table, ())]
            if missing:
                raise InputError(
                    f"made for observations without {missing[0]} of {table}, which the rule reads; {_AGAIN}"
                )
        return
    if columns.keys() != now.keys():
        raise InputError(f"made for the tables {', '.join(columns)}; observations have {', '.join(now)}")
    for table, names in now.items():
        theirs = columns[table]
        for number in range(max(len(names), len(theirs))):
            mine, other = (row[number] if number < len(row) else "none" for row in (names, theirs))
            if mine != other:
                raise InputError(
                    f"made for other observations: column {number} of {table} is {other} there and {mine} now; {_AGAIN}"
                )


_AGAIN = "train and export it again"


class GamePolicyInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a rule is, and where it comes from. Each game has a kind of its own, with its ``format``."""

    RULE: ClassVar[str]
    """In words."""
    COUNTED: ClassVar[str] = "terms"
    """What its size is told in."""
    TERMS: ClassVar[tuple[str, ...]]
    """Of the rule now."""
    SHAPES: ClassVar[Shapes]
    """Of its weights now."""
    COLUMNS: ClassVar[Collection[str]]
    """Names of those that observations have now."""

    version: Literal[1] = 1
    terms: tuple[str, ...]
    """Terms that the weights belong to, in order."""
    reads: tuple[str, ...]
    """Columns of an observation that they are made of."""
    algorithm: str
    command: str = ""
    """The command that trained it."""
    seed: int | None = None
    timesteps: int = 0
    """Decisions that it was trained for."""
    versions: dict[str, str] = {}

    def summary(self) -> str:
        """One line about it."""
        rule = f"a {self.RULE} of {len(self.terms)} {self.COUNTED}"
        return f"{self.algorithm}, {rule}, {counted(self.timesteps, 'decision')}"

    @classmethod
    def read(cls, path: str | Path) -> tuple[Self, Weights]:
        """What :func:`write_game_policy` wrote, checked.

        Raises:
            InputError: the file cannot be read, is of no such rule, or has other terms or columns than there are now.
        """
        members = read_members(Path(path))
        text = members.pop(METADATA, np.zeros(0, np.uint8)).tobytes()
        info = decoded(text, cls, f"{path}: not the file of a {cls.RULE}, which gpusched train makes")
        if info.terms != cls.TERMS:
            raise InputError(f"{path}: a {cls.RULE} of other terms than there are now; train it again")
        gone = [name for name in info.reads if name not in cls.COLUMNS]
        if gone:
            raise InputError(
                f"{path}: a {cls.RULE} that reads {gone[0]}, which observations do not have; train it again"
            )
        return info, checked_weights(members, cls.SHAPES, str(path))


def write_game_policy(path: str | Path, info: GamePolicyInfo, weights: Weights) -> None:
    """Write the file, whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    write_members(path, msgspec.json.encode(info), weights)
