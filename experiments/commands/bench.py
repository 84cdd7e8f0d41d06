"""``gpusched bench``: how fast everything is on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import MAINTAIN, Docs, Json, Overwrite


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("bench", rich_help_panel=MAINTAIN)(bench)


def bench(
    json: Json = None,
    docs: Docs = None,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each measurement.")] = 5,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Measure only the vector environment, with each of these numbers of threads, e.g. 1,2,4,8,16.",
        ),
    ] = None,
    copies: Annotated[int, typer.Option(min=1, help="Environments, with --threads.")] = 256,
    overwrite: Overwrite = False,
) -> None:
    """Measure speed beside targets, CartPole, and an environment that does nothing; takes a few minutes.

    The exit status is 0 whether or not targets are met.
    """
    from gpusched_env.experiments.benchmarks import suite
    from gpusched_env.experiments.benchmarks import threads as by_threads
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar

    counts = _numbers(threads) if threads is not None else []
    with writing(("--json", json), ("--docs", docs), overwrite=overwrite) as write:
        if counts:
            turns = len(by_threads.SCENARIOS) * len(counts) * rounds
            with progress_bar(turns, "turn", "the figures") as tell:
                speeds = by_threads.thread_speeds(
                    counts, copies, rounds, on_progress=lambda done: tell(done, done / turns)
                )
            data = by_threads.results_dict(speeds, rounds)
            table, page = by_threads.table(data), by_threads.markdown(data)
        else:
            sizes = suite.BenchmarkSizes(rounds=rounds)
            with progress_bar(6, "measurement", "the figures") as tell:
                data = suite.results_dict(suite.measure(sizes, tell), sizes)
            table, page = suite.table(data), suite.markdown(data)
        output_console().print(table)
        write("--json", data)
        write("--docs", page)


def _numbers(threads: str) -> list[int]:
    """Raises ``InputError`` for anything but numbers from 1."""
    from gpusched_env.errors import InputError

    numbers = [int(number) if number.strip().isdecimal() else 0 for number in threads.split(",")]
    if min(numbers) < 1:
        raise InputError(f"--threads is {threads!r}: give numbers from 1, separated by commas, such as 1,2,4,8")
    return numbers
