"""The command line ``gpusched``."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from typing import Annotated, Any, Final

try:
    import typer
except ModuleNotFoundError as error:
    sys.exit(f"error: the command line needs {error.name}: pip install 'gpusched-env[experiments]'")

from gpusched_env.errors import DeadlockError, GpuschedError
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
from gpusched_env.experiments.lib.options import CHECK, LISTS, MAINTAIN, USE
from gpusched_env.scenarios.games import load_room, places_of

ADDRESS_SPACE_BYTES = 1 << 30
"""The least address space: with less, BLAS, Arrow and LLVM wait forever or crash before anything can be said."""

EXIT_INPUT = 2
EXIT_DEADLOCK = 3
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141

app = typer.Typer(
    help="Schedule kernels on a shared GPU: compare schedulers, look at what ran where.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# In this order, commands and their groups are in the help; those of games come between.
FIRST: Final = (
    ("demo", USE, demo.demo_command),
    ("compare", USE, compare.compare_command),
    ("evaluate", USE, compare.evaluate_command),
    ("rank", USE, rank.rank),
    ("submit", USE, submit.submit_command),
    ("rank-replay", MAINTAIN, rank.rank_replay),
    ("rank-page", MAINTAIN, rank.rank_page),
    ("headroom-page", MAINTAIN, rank.headroom_page),
    ("tune", USE, train.tune_command),
    ("train", USE, train.train_command),
    ("sweep", USE, train.sweep_command),
)
LAST: Final = (
    ("import-kernels", USE, importing.import_kernels),
    ("import-steps", USE, importing.import_steps),
    ("import-trace", USE, importing.import_trace),
    ("scenarios", LISTS, listings.list_scenarios),
    ("schedulers", LISTS, listings.list_schedulers),
    ("gpus", LISTS, listings.list_gpus),
    ("mig-slice", USE, listings.mig_slice),
    ("workloads", LISTS, listings.list_workloads),
    ("reproduce", CHECK, reproduce.reproduce),
    ("record", CHECK, recordings.record),
    ("validate", CHECK, recordings.validate),
    ("carry-over", CHECK, recordings.carried_over),
    ("live-page", MAINTAIN, recordings.live_page),
    ("calibrate", CHECK, recordings.calibrate),
    ("interference", CHECK, reproduce.interference),
    ("bench", MAINTAIN, fuzz.bench),
    ("cache", MAINTAIN, cache.cache_command),
    ("fuzz", MAINTAIN, fuzz.fuzz_command),
    ("curves", MAINTAIN, rank.curves_command),
    ("results", MAINTAIN, rank.results_command),
    ("ship", MAINTAIN, rank.ship_command),
)
for name, panel, command in FIRST:
    app.command(name, rich_help_panel=panel)(command)
for place in places_of("command").values():
    load_room(place)(app)
for name, panel, command in LAST:
    app.command(name, rich_help_panel=panel)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gpusched_env import __version__

        typer.echo(f"gpusched-env {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that stand before a command."""


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
            app()
        finally:
            sys.stdout.flush()
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
    except (MemoryError, ImportError, RuntimeError) as error:
        short = ("map segment", "start new thread")
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in short):
            raise
        _complain(GpuschedError("not enough memory: use fewer workers, fewer seeds or a shorter horizon"))
        sys.exit(EXIT_INPUT)
    except DeadlockError as error:
        _complain(error)
        sys.exit(EXIT_DEADLOCK)
    except GpuschedError as error:
        _complain(error)
        sys.exit(EXIT_INPUT)


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
