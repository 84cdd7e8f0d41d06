"""The protocol of the board: tracks, problems, seeds and limits, as ``protocol.yaml`` has them."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.games.game import Game, RankedField, RankingTerms, common_game
from gpusched_env.experiments.ranking.episodes import Workloads
from gpusched_env.reading import checked, parse_yaml, read_text

FILE: Final = Path(__file__).with_name("protocol.yaml")
SEED_BYTES: Final = 7
"""Bytes of a sealed seed, which tables of results can hold."""


class Track(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Problems that a scheduler plays all of."""

    scenarios: list[str]
    seeds: dict[Workloads, Annotated[int, Meta(ge=1)]]
    """How many, by set of workloads; each is played on every variant."""

    @property
    def game(self) -> Game:
        """The game of the scenarios."""
        return common_game(self.scenarios)

    def field(self, scheduler: str, workloads: Workloads) -> RankedField:
        """A scheduler on a set of workloads of all scenarios.

        Raises:
            InputError: there is no such scheduler, or it cannot play one of them.
        """
        terms = RankingTerms(
            scenarios=self.scenarios,
            schedulers=[scheduler],
            workloads=workloads,
            gpu=None,
            devices=["compiled"],
            settings=[],
        )
        return self.game.ranked(terms)


class Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seeds that are drawn by a secret, which was committed to before it is said."""

    sha256: str
    """Of the secret."""
    secret: str | None
    """``None``: not said yet."""

    def seeds(self, number: int, secret: str) -> list[int]:
        """So many seeds, drawn by the secret.

        Raises:
            InputError: it is not the one that was committed to.
        """
        if (found := hashlib.sha256(secret.encode()).hexdigest()) != self.sha256:
            raise InputError(f"--secret: its SHA-256 is {found}, the protocol committed to {self.sha256}")
        digests = (hashlib.sha256(f"{secret}:{number}".encode()).digest() for number in range(number))
        return [int.from_bytes(digest[:SEED_BYTES], "big") for digest in digests]


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every row of the board was played by."""

    version: str
    seeds: list[int]
    """The open ones, of which a set of workloads takes the first."""
    sealed: Sealed
    limit_s: float
    """Processor seconds that one episode may take."""
    tracks: dict[str, Track]

    def track(self, name: str) -> Track:
        """A track by its name.

        Raises:
            InputError: there is none.
        """
        if name not in self.tracks:
            raise InputError(f"unknown track {name!r}; {did_you_mean(name, self.tracks)}")
        return self.tracks[name]


@functools.cache
def protocol() -> Protocol:
    """The one of this release."""
    return checked(parse_yaml(read_text(FILE), FILE.name), Protocol, FILE.name)
