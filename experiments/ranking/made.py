"""What an episode was made by, as hashes of the sources and data that it depends on."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpusched_env.baselines.at_intervals import PREFIX as INTERVAL
from gpusched_env.baselines.at_intervals import rule_and_interval
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.registered import Registered, parse_spec
from gpusched_env.baselines.tuning import PREFIX as TUNED
from gpusched_env.baselines.tuning import tuned_spec
from gpusched_env.closure import closure
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.trained import is_learned, path_and_options
from gpusched_env.experiments.ranking import bound
from gpusched_env.experiments.ranking.episodes import RankedEpisode
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.reading import read_bytes
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.games import rooms_of
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.sources import LENGTH, PACKAGE, ROOT, hash_of, is_shipped, read
from gpusched_env.workload.workload import is_workload_path

if TYPE_CHECKING:
    from gpusched_env.agents.training.config import Training

APART: Final = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        *("baselines.registry", "caching", "closure", "display", "errors", "reading", "sources", "syntax", "versions"),
        *("devices.cuda", "episodes.cautions", "episodes.charts", "episodes.films", "episodes.frames"),
        *("episodes.scenes", "experiments", "scenarios.games", "workload.importers"),
    )
)
"""Modules, with all below them, that no episode on a simulated device depends on."""


def closure_of(roots: Iterable[str | Path], known: frozenset[Path] = frozenset()) -> frozenset[Path]:
    """All files that modules of this package, or files of a user, are made by, but for those that are ``known``."""
    files = frozenset(closure(roots, apart=APART, known=known))
    data = (file for path in files for text in read(path).strings for file in _data_files(text, path))
    return files.union(file for file in data if file not in known)


def _data_files(text: str, path: Path) -> Iterator[Path]:
    if is_shipped(path):
        yield from _shipped_data().get(text, ())
    elif (beside := path.with_name(text)).is_file():
        yield beside


@functools.cache
def _shipped_data() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "data").rglob("*.json")):
        found.setdefault(path.name, []).append(path)
    return found


PARTS: Final = ("physics", "scheduler", "data", "weights")
Hashes = tuple[str | None, ...]
"""Hashes of an episode, in the order of :data:`PARTS`; ``None``: not known, or there is nothing of the kind."""


class Fingerprints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hashes of what the episodes of a result file were made by; empty: it is not known."""

    physics: dict[str, str] = {}
    """Hashes by device: of the device, the environment of play, metrics and cost."""
    schedulers: dict[str, dict[str, str]] = {}
    """Hashes by scenario and scheduler: of its sources beyond the physics, and its options."""
    data: dict[str, dict[str, str]] = {}
    """Hashes by scenario and variant: of the scenario as it is played, its workloads and GPU."""
    weights: dict[str, dict[str, str]] = {}
    """SHA-256 of the policy's file, by scenario and trained scheduler."""

    def of(self, cell: RankedEpisode) -> Hashes:
        """The hashes of an episode."""
        scenario, name = cell.scenario, cell.scheduler
        schedulers, data, weights = (of.get(scenario, {}) for of in (self.schedulers, self.data, self.weights))
        return self.physics.get(cell.device), schedulers.get(name), data.get(cell.variant), weights.get(name)


@dataclass(frozen=True)
class Origin:
    """The origin of a scheduler: files and options that it is made of."""

    roots: list[str | Path]
    """Modules of the package, and files of the user."""
    options: list[str] = field(default_factory=list)


ALONE_ORIGIN: Final = Origin([PassThrough.__module__, bound.__name__])
"""Origin of the episodes with every tenant alone."""


def made_by(
    physics: Mapping[str, Sequence[str]],
    schedulers: Mapping[str, Mapping[str, Origin]],
    *,
    data: Mapping[str, Mapping[str, str]] | None = None,
    weights: Mapping[str, Mapping[str, str]] | None = None,
) -> Fingerprints:
    """The hashes of what is there now.

    Args:
        physics: by device the modules that play an episode.
        schedulers: by scenario and name.
        data, weights: as :class:`Fingerprints` has them.
    """
    under = {device: closure_of(roots) for device, roots in physics.items()}
    common = frozenset.intersection(*under.values())
    return Fingerprints(
        physics={device: hash_of(files) for device, files in under.items()},
        schedulers={
            scenario: {name: hash_of(closure_of(of.roots, common), *of.options) for name, of in origins.items()}
            for scenario, origins in schedulers.items()
        },
        data={scenario: dict(of) for scenario, of in (data or {}).items()},
        weights={scenario: dict(of) for scenario, of in (weights or {}).items() if of},
    )


def origin_of(name: str, made: object, registered: Registered[Any], scenario: str) -> Origin:
    """The origin of a scheduler.

    Args:
        name: of it, as rankings have it.
        made: the scheduler that the name stands for.
        registered: the game's hand-written ones.
        scenario: whose tuned options are meant.
    """
    if name.startswith(INTERVAL):
        rule, interval_us = rule_and_interval(name)
        within = origin_of(rule, made, registered, scenario)
        return Origin([type(made).__module__, *within.roots], [f"{interval_us}", *within.options])
    if is_learned(name):
        return Origin([type(made).__module__], _texts(path_and_options(name)[1]))
    given, options = parse_spec(tuned_spec(name, scenario) if name.startswith(TUNED) else name)
    if ":" in given:
        place, _, what = given.rpartition(":")
        module = sys.modules.get(place)
        root: str | Path = (
            place if place.startswith(f"{PACKAGE}.") else Path(getattr(module, "__file__", None) or place)
        )
        return Origin([root], [what, *_texts(options)])
    maker: Any = registered.maker(given)
    members = [registered.maker(parse_spec(spec)[0]).__module__ for spec in getattr(made, "portfolio", ())]
    return Origin([maker.__module__, *members], [maker.__qualname__, *_texts(options)])


def data_hash(scenario: Scenario) -> str:
    """The hash of a scenario as it is played, of its workloads, its traces and its GPU, wherever their files are."""
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(scenario, workload_sets=None))
    plain["gpu"] = msgspec.to_builtins(load_gpu(scenario.gpu))
    digest = hashlib.sha256()
    for tenant in plain["tenants"]:
        digest.update(msgspec.json.encode(load_workload(tenant["workload"])))
        if is_workload_path(tenant["workload"]):
            tenant["workload"] = Path(tenant["workload"]).name
        if trace := tenant["arrivals"].get("file"):
            digest.update(read_bytes(Path(trace)))
            tenant["arrivals"]["file"] = Path(trace).name
    digest.update(msgspec.json.encode(plain, order="sorted"))
    return digest.hexdigest()[:LENGTH]


def made_by_training(config: Training) -> Fingerprints:
    """The hashes of what trains, plays and validates, under ``training``, and of the scenario."""
    scenario = config.scenario
    data = {scenario.name: {scenario.name: data_hash(scenario)}} if isinstance(scenario, Scenario) else {}
    trainer = rooms_of(scenario).trainer.partition(":")[0]
    return made_by({"training": ["gpusched_env.agents.training", trainer]}, {}, data=data)


def merged(one: Fingerprints, other: Fingerprints) -> Fingerprints:
    """What two runs were made by that go into one file."""
    return Fingerprints(
        **{part: {**getattr(one, part), **getattr(other, part)} for part in Fingerprints.__struct_fields__}
    )


def check_together(found: Mapping[str, Fingerprints]) -> None:
    """Whether the same sources and data made what several files have of the same device, scheduler or problem.

    Says of which files that is not known.

    Args:
        found: by what errors call the files.

    Raises:
        InputError: they did not.
    """
    first: dict[tuple[str, ...], tuple[str, str]] = {}
    for where, made in found.items():
        for (part, *of), digest in _each(made):
            other, known = first.setdefault((part, *of), (where, digest))
            if known != digest:
                words = f"{part} ({', '.join(of)}) than {other}"
                raise InputError(f"{where}: made by other {words}; make one of them again")
    if unknown := [where for where, made in found.items() if made == Fingerprints()]:
        sys.stderr.write(f"gpusched: {len(unknown)} of {counted(len(found), 'file')} do not say what made them\n")


def _each(made: Fingerprints) -> Iterator[tuple[tuple[str, ...], str]]:
    """All hashes, with the part that they are of, the scenario but for physics, and the name."""
    yield from ((("physics", device), digest) for device, digest in made.physics.items())
    for part, of in zip(PARTS[1:], (made.schedulers, made.data, made.weights), strict=True):
        yield from (((part, scenario, name), digest) for scenario in of for name, digest in of[scenario].items())


def changed_parts(before: Hashes, now: Hashes) -> list[str]:
    """Which of :data:`PARTS` differ."""
    return [part for part, old, new in zip(PARTS, before, now, strict=True) if old != new]


def _texts(options: Mapping[str, str]) -> list[str]:
    return [f"{option}={value}" for option, value in sorted(options.items())]
