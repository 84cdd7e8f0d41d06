"""The command line ``gpusched``."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from typing import Annotated, Any

from gpusched_env.errors import EXTRA_OF, DeadlockError, GpuschedError, needs

try:
    import typer
except ModuleNotFoundError as error:
    sys.exit(f"error: {needs('the command line', str(error.name))}")

from gpusched_env.experiments.commands import (
    cache,
    compare,
    demo,
    fuzz,
    importing,
    listings,
    rank,
    recordings,
    reproduce,
    submit,
    train,
)
from gpusched_env.experiments.commands.usage import Commands, UsageError, explained, show_help
from gpusched_env.experiments.lib.options import CHECK, GAMES, PAGES, RANK
from gpusched_env.scenarios.games import load_room, places_of

ADDRESS_SPACE_BYTES = 1 << 30
"""The least address space: with less, BLAS, Arrow and LLVM wait forever or crash before anything can be said."""

EXIT_INPUT = 2
EXIT_DEADLOCK = 3
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141


def _group(about: str) -> typer.Typer:
    """An empty group of commands, which says what there is where none is named."""
    return typer.Typer(
        help=about,
        cls=Commands,
        invoke_without_command=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=show_help,
    )


app = _group("Schedule kernels on a shared GPU: compare schedulers, look at what ran where.")
listing = _group("List what there is: scenarios, schedulers, GPUs, workloads.")
bring = _group("Turn recordings of a GPU into workloads.")
lab = _group("Rankings, checks of the simulator, fleets and clusters, and what pages are made by.")
page = _group("Write a page of the documentation from result files.")
for name, command in (
    ("demo", demo.demo_command),
    ("compare", compare.compare_command),
    ("train", train.train_command),
    ("evaluate", compare.evaluate_command),
    ("tune", train.tune_command),
    ("reproduce", reproduce.reproduce),
):
    app.command(name)(command)
app.add_typer(bring, name="import")
app.add_typer(listing, name="list")
app.command("submit", rich_help_panel="More")(submit.submit_command)
app.add_typer(lab, name="lab", rich_help_panel="More")
for name, command in (
    ("scenarios", listings.list_scenarios),
    ("schedulers", listings.list_schedulers),
    ("gpus", listings.list_gpus),
    ("workloads", listings.list_workloads),
):
    listing.command(name)(command)
for name, command in (
    ("trace", importing.import_trace),
    ("steps", importing.import_steps),
    ("kernels", importing.import_kernels),
):
    bring.command(name)(command)
# In this order, commands and their groups are in the help.
for name, panel, command in (
    ("rank", RANK, rank.rank),
    ("replay", RANK, rank.rank_replay),
    ("search", RANK, train.search_command),
    ("curves", RANK, rank.curves_command),
    ("ship", RANK, rank.ship_command),
    ("record", CHECK, recordings.record),
    ("validate", CHECK, recordings.validate),
    ("carry-over", CHECK, recordings.carried_over),
    ("calibrate", CHECK, recordings.calibrate),
    ("interference", CHECK, reproduce.interference),
    ("fuzz", CHECK, fuzz.fuzz_command),
    ("bench", CHECK, fuzz.bench),
    ("cache", CHECK, cache.cache_command),
    ("mig-slice", GAMES, listings.mig_slice),
):
    lab.command(name, rich_help_panel=panel)(command)
for name, command in (
    ("rankings", rank.rank_page),
    ("headroom", rank.headroom_page),
    ("live", recordings.live_page),
    ("results", rank.results_command),
):
    page.command(name)(command)
lab.add_typer(page, name="page", rich_help_panel=PAGES)
for place in places_of("command").values():
    load_room(place)(lab, page)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gpusched_env import __version__

        typer.echo(f"gpusched-env {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that stand before a command."""
    show_help(context)


def main() -> None:
    """Run the command line; exit status 2 for wrong input, 3 for a deadlock, 130 after an interrupt or SIGTERM."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows no ± gets a question mark.
            stream.reconfigure(errors="replace")
    if threading.current_thread() is threading.main_thread():
        # Whoever asks to end gets what an interrupt keeps.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if type(sys.stdout) is io.TextIOWrapper:
        sys.stdout = _output(sys.stdout)
    try:
        _check_address_space()
        try:
            status = app(prog_name="gpusched", standalone_mode=False)
        finally:
            sys.stdout.flush()
        sys.exit(status)
    except BrokenPipeError:
        # Whoever read the output has enough.
        _discard_output()
        sys.exit(EXIT_PIPE)
    except OutputError as error:
        _discard_output()
        _complain(error)
        sys.exit(EXIT_INPUT)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing not in EXTRA_OF:
            raise
        _complain(GpuschedError(needs(" ".join(["gpusched", *_words(sys.argv[1:])]), missing)))
        sys.exit(EXIT_INPUT)
    except (MemoryError, ImportError, RuntimeError) as error:
        short = ("map segment", "start new thread")
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in short):
            raise
        _complain(GpuschedError("not enough memory: use fewer workers, fewer seeds or a shorter horizon"))
        sys.exit(EXIT_INPUT)
    except UsageError as error:
        _complain(explained(error))
        sys.exit(EXIT_INPUT)
    except DeadlockError as error:
        _complain(error)
        sys.exit(EXIT_DEADLOCK)
    except GpuschedError as error:
        _complain(error)
        sys.exit(EXIT_INPUT)


def _words(arguments: list[str]) -> list[str]:
    """Those that name the command."""
    groups = {"lab", "list", "import", "page"}
    last = next((place for place, word in enumerate(arguments) if word not in groups), len(arguments))
    return arguments[: last + 1]


class OutputError(GpuschedError):
    """The standard output cannot be written: no result file is at fault."""


class _StandardOutput(io.FileIO):
    """Standard output that says of itself if it cannot be written."""

    def write(self, data: Any) -> int:
        """
        Raises:
            OutputError: it cannot be written.
        """
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"the standard output cannot be written ({error.strerror})") from error


def _output(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """``stream``, which raises :class:`OutputError` where it cannot be written."""
    raw = _StandardOutput(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _discard_output() -> None:
    """Send what is still to be flushed nowhere, so that it does not complain either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_address_space() -> None:
    try:
        import resource
    except ModuleNotFoundError:
        # Only Unix has limits of this kind.
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE_BYTES:
        raise GpuschedError(
            f"not enough memory: this process may use {limit >> 20} MiB of address space, and needs at least "
            f"{ADDRESS_SPACE_BYTES >> 20}: raise the limit, as ulimit -v {ADDRESS_SPACE_BYTES >> 10} does"
        )


def _complain(error: GpuschedError) -> None:
    # What was given may be in it, and a terminal would obey control characters.
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(str(error).split()))
    with contextlib.suppress(OSError):  # Nobody can be told.
        typer.secho(f"error: {line}", fg=typer.colors.RED, err=True)


if __name__ == "__main__":
    main()
