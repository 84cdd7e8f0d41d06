"""``gpusched submit``: a submission's row and a copy of its file in the folder of rows, or a row played again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import refuse_existing, write_file
from gpusched_env.experiments.lib.terminal import progress_bar
from gpusched_env.experiments.submission.board import boards
from gpusched_env.experiments.submission.entry import check_name, entry_of
from gpusched_env.experiments.submission.protocol import protocol
from gpusched_env.experiments.submission.row import Row, encode_row, read_row, read_rows
from gpusched_env.experiments.submission.run import again, differences, submitted
from gpusched_env.reading import read_bytes


def submit(
    file: str,
    *,
    track: str,
    name: str | None,
    source: str,
    into: Path,
    secret: str | None,
    workers: int | None,
    overwrite: bool,
    command: str,
) -> str:
    """Check, play and write a submission; returns what came of it, in words.

    Raises:
        InputError: the board does not take it, or the row is there already.
    """
    protocol().track(track)
    entry = entry_of(file)
    called = entry.name if name is None else name
    check_name(called)
    target = into / track / f"{called}.json"
    refuse_existing(target, "--name", overwrite=overwrite)
    with progress_bar(None) as on_progress:
        row = submitted(
            entry,
            track,
            called,
            source,
            secret=secret,
            workers=workers,
            on_progress=on_progress,
            command=command,
        )
    for beside in row.files:
        given, copy = (entry.file or target).parent / beside, target.parent / beside
        if given.resolve() != copy.resolve():
            refuse_existing(copy, "--into", overwrite=overwrite)
            write_file(copy, read_bytes(given), "--into")
    write_file(target, encode_row(row), "--into")
    return f"Written: {target}\n{_standing(row, into)}"


def _standing(row: Row, into: Path) -> str:
    """What a row comes to beside the others in the folder."""
    try:
        board = next(one for one in boards(read_rows(into).values()) if one.track == row.track)
        place = board.rows.index(row) + 1
    except (StopIteration, ValueError):
        return f"No score: {into} has no row of the plain GPU that the same simulator made (docs/submissions has)."
    reads = ", ".join(row.reads) or "nothing but what is pending"
    score = f"Score {board.score(row):.3f} (plain GPU: 1; lower is better), place {place} of {len(board.rows)}"
    return f"{score}\nReads: {reads}"


def replayed(
    path: Path, *, secret: str | None, workers: int | None, overwrite: bool, tell: Callable[[str], object]
) -> bool:
    """Play a row again; whether every cost came out to the last bit.

    Args:
        path: of the row.
        secret, workers: as for :func:`submit`.
        overwrite: write the row anew.
        tell: called with a line for each difference and one at the end.

    Raises:
        InputError: it is no row, its file is another one, or the board does not take it.
    """
    row = read_row(path)
    if row.protocol != protocol().version and not overwrite:
        raise InputError(
            f"{path}: is of protocol {row.protocol}, here is {protocol().version}; --overwrite plays it by that one"
        )
    with progress_bar(None) as on_progress:
        now = again(row, path, secret=secret, workers=workers, on_progress=on_progress)
    found = differences(row, now)
    for line in found:
        tell(f"{path}: {line}")
    tell(f"{path}: {len(row.episodes) - len(found)} of {len(row.episodes)} episodes equal to the last bit")
    if overwrite:
        write_file(path, encode_row(now), "--into")
    return not found
