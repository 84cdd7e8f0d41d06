"""``gpusched bench``: how fast everything is on this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import MAINTAIN


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("bench", rich_help_panel=MAINTAIN)(bench)


def bench(
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write figures and raw timings there.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="PATH", help="Write a Markdown page too.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each measurement.")] = 5,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Measure only the vector environment, with each of these numbers of threads, e.g. 1,2,4,8,16.",
        ),
    ] = None,
    copies: Annotated[int, typer.Option(min=1, help="Environments, with --threads.")] = 256,
) -> None:
    """Measure speed beside targets, CartPole, and an environment that does nothing; takes a few minutes.

    The exit status is 0 whether or not targets are met.
    """
    if threads is not None:
        _bench_threads(threads, copies, rounds, json, docs)
        return
    from gpusched_env.experiments.benchmarks.report import page, table
    from gpusched_env.experiments.benchmarks.suite import Sizes, measure, results_dict
    from gpusched_env.experiments.lib.files import encoded, result_file
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar

    sizes = Sizes(rounds=rounds)
    with contextlib.ExitStack() as stack:
        data_file = stack.enter_context(result_file(json, "--json")) if json is not None else None
        docs_file = stack.enter_context(result_file(docs, "--docs")) if docs is not None else None
        with progress_bar(6, "groups of measurements", "the figures") as on_progress:
            timings = measure(sizes, lambda done, total, name: on_progress(done, done / total))
        data = results_dict(timings, sizes)
        output_console().print(table(data))
        if data_file is not None:
            data_file.write_bytes(encoded(data))
        if docs_file is not None:
            docs_file.write_text(page(data), encoding="utf-8")


def _bench_threads(threads: str, copies: int, rounds: int, json: Path | None, docs: Path | None) -> None:
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.benchmarks.threads import SCENARIOS, page, results_dict, table, thread_speeds
    from gpusched_env.experiments.lib.files import encoded, result_file
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar

    try:
        counts = [int(count) for count in threads.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise InputError(f"--threads is {threads!r}: give numbers from 1, separated by commas, such as 1,2,4,8")
    with contextlib.ExitStack() as stack:
        data_file = stack.enter_context(result_file(json, "--json")) if json is not None else None
        docs_file = stack.enter_context(result_file(docs, "--docs")) if docs is not None else None
        turns = len(SCENARIOS) * len(counts) * rounds
        with progress_bar(turns, "turns", "the figures") as on_progress:
            speeds = thread_speeds(counts, copies, rounds, on_progress=lambda done: on_progress(done, done / turns))
        output_console().print(table(speeds))
        if data_file is not None:
            data_file.write_bytes(encoded(results_dict(speeds, rounds)))
        if docs_file is not None:
            docs_file.write_text(page(speeds, rounds), encoding="utf-8")
