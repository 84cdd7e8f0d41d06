"""A row of the board: what a scheduler cost on every problem of a track, and hashes of what it was made by."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.lib.files import MOST, encode_rows, read_struct
from gpusched_env.experiments.ranking.episodes import Workloads
from gpusched_env.experiments.ranking.made import PARTS, Hashes
from gpusched_env.experiments.submission.entry import Kind

SCHEMA: Final = "gpusched-submission/1"


class ScoredEpisode(msgspec.Struct, frozen=True, omit_defaults=True):
    """An episode of a submission."""

    scenario: str
    workloads: Workloads
    variant: str
    seed: int
    cost: Annotated[float, Meta(gt=0.0, le=MOST)]
    sealed: bool = False
    """Whether the seed is one that nobody knew."""


class Row(msgspec.Struct, kw_only=True):
    """A submission that was played."""

    schema: str = SCHEMA
    protocol: str
    """Its version."""
    track: str
    name: str
    kind: Kind
    source: str
    """Who made it, and where it is described."""
    scheduler: str
    """As rankings name it; a file lies beside the row."""
    files: dict[str, str]
    """SHA-256 of the file, and of those that it opened, by name."""
    reads: list[str]
    """Parts of what is known that its decisions depend on."""
    hashes: dict[str, str]
    """Of all that the episodes were made by, by part."""
    versions: dict[str, str]
    command: str
    episodes: list[ScoredEpisode]

    def costs(self, sealed: bool = False) -> dict[tuple[str, str], float]:
        """Mean costs by scenario and set of workloads, over the open seeds or the sealed ones."""
        found: dict[tuple[str, str], list[float]] = {}
        for one in self.episodes:
            if one.sealed == sealed:
                found.setdefault((one.scenario, one.workloads), []).append(one.cost)
        return {key: game_of(key[0]).mean(costs) for key, costs in found.items()}

    def is_comparable(self, other: Row) -> bool:
        """Whether the same simulator and the same problems made both, under one version of the protocol."""
        # Other games than that of kernels have no data apart from their sources.
        own, theirs = (
            (row.protocol, row.track, row.hashes.get("physics"), row.hashes.get("data")) for row in (self, other)
        )
        return own == theirs


def score(costs: Mapping[tuple[str, str], float], plain: Mapping[tuple[str, str], float]) -> float:
    """The geometric mean, over scenarios and sets of workloads, of the cost over that of the plain GPU."""
    return math.exp(sum(math.log(costs[key] / plain[key]) for key in plain) / len(plain))


def joined(hashes: Iterable[Hashes]) -> dict[str, str]:
    """One hash for each part, of those of all episodes."""
    found: dict[str, str] = {}
    for part, of in zip(PARTS, zip(*hashes, strict=True), strict=True):
        known = sorted({one for one in of if one})
        if known:
            found[part] = hashlib.sha256(" ".join(known).encode()).hexdigest()
    return found


def encode_row(row: Row) -> bytes:
    """JSON, a line an episode."""
    return encode_rows(msgspec.structs.replace(row, episodes=[]), row.episodes)


def read_row(path: Path) -> Row:
    """A file that ``gpusched submit`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    row = read_struct(path, Row, SCHEMA, "no row of a submission", "gpusched submit writes one")
    if path.stem != row.name:
        raise InputError(f"{path}: the row is of {row.name!r}; its file must be called {row.name}.json")
    return row


def read_rows(folder: Path) -> dict[Path, Row]:
    """All rows in a folder and those below, by file.

    Raises:
        InputError: a ``.json`` in it cannot be read, or is no row.
    """
    return {path: read_row(path) for path in sorted(folder.rglob("*.json"))}
