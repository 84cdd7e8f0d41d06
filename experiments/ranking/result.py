"""The file of a ranking: its episodes, and what is needed to run them again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.experiments.json_file import encode_rows, read_struct
from gpusched_env.experiments.ranking.bound import ALONE
from gpusched_env.experiments.ranking.episodes import EpisodeCost, Workloads

SCHEMA = "gpusched-ranking/1"


class Ranking(msgspec.Struct, kw_only=True):
    """Episodes of several schedulers on the same problems and seeds."""

    schema: str = SCHEMA
    command: str
    versions: dict[str, str]
    workloads: Workloads
    gpu: str | None
    """Instead of the scenarios' own."""
    schedulers: list[str]
    devices: list[str]
    """The first decides; others are compared with it."""
    seeds: list[int]
    variants: dict[str, list[str]]
    """By scenario: names of the problems that were run."""
    bounded: list[str] = []
    """Scenarios whose cost with every tenant alone is among the episodes, on the first device."""
    settings: list[str] = []
    """Fields of the scenarios that were replaced, as ``--set`` takes them."""
    clairvoyant: list[str] = []
    """Schedulers that were told the truth."""
    policies: dict[str, dict[str, str]] = {}
    """By scenario and trained scheduler: SHA-256 of its policy's file."""
    episodes: list[EpisodeCost]

    @property
    def complete(self) -> bool:
        """Whether every episode has been run."""
        problems = sum(len(names) for names in self.variants.values())
        bounded = sum(len(self.variants[scenario]) for scenario in self.bounded)
        each = len(self.schedulers) * len(self.devices)
        return len(self.episodes) == (problems * each + bounded) * len(self.seeds)

    def costs(self, scenario: str, device: str) -> dict[str, NDArray[np.float64]]:
        """By scheduler, shape ``(variants, seeds)``.

        Raises:
            InputError: episodes are missing.
        """
        return self._costs(scenario, device, self.schedulers)

    def alone(self, scenario: str) -> NDArray[np.float64] | None:
        """With every tenant alone, shape ``(variants, seeds)``; ``None`` if it was not run.

        Raises:
            InputError: episodes are missing.
        """
        if scenario not in self.bounded:
            return None
        return self._costs(scenario, self.devices[0], [ALONE])[ALONE]

    def _costs(self, scenario: str, device: str, schedulers: list[str]) -> dict[str, NDArray[np.float64]]:
        found = {
            (e.cell.scheduler, e.cell.variant, e.cell.seed): e.cost
            for e in self.episodes
            if e.cell.scenario == scenario and e.cell.device == device
        }
        variants = self.variants[scenario]
        wanted = [(s, v, n) for s in schedulers for v in variants for n in self.seeds]
        missing = [key for key in wanted if key not in found]
        if missing:
            raise InputError(f"{scenario} on {device}: {len(missing)} of {len(wanted)} episodes are missing")
        return {s: np.array([[found[s, v, n] for n in self.seeds] for v in variants]) for s in schedulers}


def encode_ranking(ranking: Ranking) -> bytes:
    """JSON, a line an episode."""
    return encode_rows(msgspec.structs.replace(ranking, episodes=[]), ranking.episodes)


def read_ranking(path: Path) -> Ranking:
    """A file that ``gpusched rank`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    return read_struct(path, Ranking, SCHEMA, "not a ranking", "gpusched rank --json writes one")


def device_difference(ranking: Ranking, scenario: str) -> float:
    """Largest relative difference of an episode's cost between the first device and another; 0 with one device.

    Raises:
        InputError: episodes are missing.
    """
    first = ranking.costs(scenario, ranking.devices[0])
    others = [ranking.costs(scenario, device) for device in ranking.devices[1:]]
    return max((float(np.max(np.abs(other[s] / first[s] - 1.0))) for other in others for s in first), default=0.0)
