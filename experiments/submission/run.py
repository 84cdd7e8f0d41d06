"""A submission, from its file to its row: checked, played on all problems of a track, and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpusched_env.agents.manifest import file_hash
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.workers import Progress, counting, run_grid
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode, Workloads
from gpusched_env.experiments.ranking.made import Hashes
from gpusched_env.experiments.submission.entry import Entry, examined
from gpusched_env.experiments.submission.protocol import Track, protocol
from gpusched_env.experiments.submission.row import Row, ScoredEpisode, joined
from gpusched_env.experiments.submission.watching import limited, watching
from gpusched_env.versions import versions


@dataclass(frozen=True)
class WatchedTask:
    """The task of worker processes: an episode, within its time, and the files that its scheduler opened."""

    play: Callable[[RankedEpisode], EpisodeCost]
    folder: Path | None
    limit_s: float

    def __call__(self, cell: RankedEpisode) -> tuple[EpisodeCost, set[str]]:
        what = f"{cell.variant}, seed {cell.seed}"
        with watching(self.folder) as watch, limited(self.limit_s, what):
            cost = self.play(cell)
        return cost, watch.opened


@dataclass
class _Played:
    """What the episodes of a submission left behind."""

    episodes: list[ScoredEpisode]
    hashes: set[Hashes]
    opened: set[str]


def submitted(
    entry: Entry,
    track: str,
    name: str,
    source: str,
    *,
    secret: str | None = None,
    workers: int | None = None,
    on_progress: Progress | None = None,
    command: str = "",
) -> Row:
    """Check a submission, play it on all problems of its track, and make its row.

    Args:
        entry: of :func:`~gpusched_env.experiments.submission.entry.entry_of`.
        track: name of one of the protocol's.
        name, source: as :class:`~gpusched_env.experiments.submission.row.Row` has them.
        secret: of the sealed seeds, if it is known; they are played as well then.
        workers: processes (default: one a CPU core).
        on_progress: called with the number of finished episodes and their share.
        command: noted in the row.

    Raises:
        InputError: the board does not take it: one sentence.
        GpuschedError: it failed in an episode.
        KeyboardInterrupt: an interrupt cut it short.
    """
    of = protocol().track(track)
    reads = examined(entry, of)
    played = _all_played(entry, of, secret, workers, on_progress)
    files = [] if entry.file is None else [entry.file, *(entry.file.parent / opened for opened in played.opened)]
    return Row(
        protocol=protocol().version,
        track=track,
        name=name,
        kind=entry.kind,
        source=source,
        scheduler=entry.stored,
        files={file.name: file_hash(file) for file in sorted(set(files))},
        reads=reads,
        hashes=joined(played.hashes),
        versions=versions(),
        command=command,
        episodes=played.episodes,
    )


def _seeds(number: int, secret: str | None) -> dict[int, bool]:
    """So many open seeds, and as many sealed ones if the secret is known; whether each is sealed."""
    rules = protocol()
    said = secret or rules.sealed.secret
    sealed = rules.sealed.seeds(number, said) if said else []
    return dict.fromkeys(rules.seeds[:number], False) | dict.fromkeys(sealed, True)


def _all_played(
    entry: Entry, track: Track, secret: str | None, workers: int | None, on_progress: Progress | None
) -> _Played:
    found = _Played([], set(), set())
    plans: list[tuple[Workloads, dict[int, bool]]] = [
        (of, _seeds(number, secret)) for of, number in track.seeds.items()
    ]
    fields = [track.field(entry.reference, of) for of, _ in plans]
    groups = [
        # Without the episodes of a bound, which are the same for everybody.
        [[cell for cell in group if cell.scheduler == entry.reference]
         for group in field.grid.groups([entry.reference], list(seeds))]
        for field, (_, seeds) in zip(fields, plans, strict=True)
    ]  # fmt: skip
    tell = counting(on_progress, sum(len(group) for of in groups for group in of))
    for (workloads, seeds), field, cells in zip(plans, fields, groups, strict=True):
        costs: dict[RankedEpisode, float] = {}

        def keep(played: list[tuple[EpisodeCost, set[str]]], costs: dict[RankedEpisode, float] = costs) -> None:
            for one, opened in played:
                costs[one.cell] = one.cost
                found.opened |= opened
            tell(len(played))

        if not run_grid(WatchedTask(field.grid.task, entry.folder, protocol().limit_s), cells, workers, keep):
            raise KeyboardInterrupt
        for cell in (cell for group in cells for cell in group):
            sealed = seeds[cell.seed]
            found.episodes.append(
                ScoredEpisode(cell.scenario, workloads, cell.variant, cell.seed, costs[cell], sealed=sealed)
            )
            found.hashes.add(field.made.of(cell))
    return found


def again(row: Row, path: Path, **options: object) -> Row:
    """A row that was written, played anew by what is there now.

    Args:
        row: as it was written.
        path: its file, beside which that of the scheduler lies.
        options: as :func:`submitted` takes them.

    Raises:
        InputError: its file is missing or another one; and as :func:`submitted`.
    """
    from gpusched_env.experiments.submission.entry import entry_of

    given = row.scheduler
    for name, digest in row.files.items():
        if file_hash(path.parent / name) != digest:
            raise InputError(f"{path.parent / name}: is not the file that the row {row.name} was made by")
        given = given.replace(name, str(path.parent / name))
    made: Row = submitted(entry_of(given), row.track, row.name, row.source, **options)  # type: ignore[arg-type]
    return msgspec.structs.replace(made, command=row.command)


def differences(before: Row, now: Row) -> list[str]:
    """What of a row's episodes comes out otherwise, a line each."""
    costs = {(one.scenario, one.workloads, one.variant, one.seed): one.cost for one in now.episodes}
    return [
        f"{one.variant}, seed {one.seed}: cost {one.cost!r} in the row, {played!r} now"
        for one in before.episodes
        if (played := costs.get((one.scenario, one.workloads, one.variant, one.seed))) != one.cost
    ]
