"""``gpusched reproduce``: simulate again what was recorded or published."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from gpusched_env.experiments.lib.options import CHECK


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    group = typer.Typer(no_args_is_help=True, help="Simulate again what was recorded or published, and compare.")
    group.command("recordings")(recordings)
    group.command("concurrency")(concurrency)
    group.command("fikit")(fikit)
    app.add_typer(group, name="reproduce", rich_help_panel=CHECK)


def recordings(
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figures there.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="PATH", help="Write them as a Markdown page too.")] = None,
) -> None:
    """Compare the simulator with the shipped H100 recordings; exit status 1 if a figure is out of tolerance.

    Workloads alone, ResNet-50 inference beside training, and time-sliced processes.
    """
    from rich.console import Console

    from gpusched_env.experiments.lib.files import result_file
    from gpusched_env.experiments.reproduce.check import checks_markdown, checks_table, summary_line, write_checks
    from gpusched_env.experiments.reproduce.recordings import __doc__ as explanation
    from gpusched_env.experiments.reproduce.recordings import all_checks

    console = Console()
    checks = []
    with Console(stderr=True).status("Simulating") as status:
        for check in all_checks():
            checks.append(check)
            status.update(f"{check.group}: {check.what}")
    console.print(checks_table(checks))
    if json is not None:
        write_checks(json, "recordings", checks)
    if docs is not None:
        title = "# The simulator against its recordings\n\nWritten by `gpusched reproduce recordings --docs`."
        page = f"{title}\n\n{explanation}\n{checks_markdown(checks)}"
        with result_file(docs, "--docs") as staging:
            staging.write_text(page)
    typer.echo(summary_line("recordings", checks))
    raise typer.Exit(0 if all(check.holds for check in checks) else 1)


def concurrency(
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write everything there.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write concurrency.md and .json there.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the Markdown page there.")] = None,
    device: Annotated[str, typer.Option(help="Device that runs the kernels.")] = "compiled",
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
) -> None:
    """NVIDIA's sharing mechanisms as Gilman and Walls (2021) found them; exit status 1 if a claim does not come out.

    Inference beside training under priority streams, time slices, MPS and preemption, on two GPUs; their
    observations and figures beside ours; and pairs of networks recorded on an H100, within 15 % each.
    """
    from gpusched_env.experiments.lib.names import new_device
    from gpusched_env.experiments.lib.terminal import progress_bar
    from gpusched_env.experiments.reproduce.concurrency.page import markdown, terminal
    from gpusched_env.experiments.reproduce.concurrency.reproduction import reproduce
    from gpusched_env.experiments.reproduce.concurrency.setting import all_cells

    new_device(device)
    with _files("concurrency", json, out, docs) as write:
        with progress_bar(len(all_cells()), "runs", "the recorded pairs") as on_progress:
            result = reproduce(workers, device, on_progress)
        write(result, terminal(result), markdown(result))
    raise typer.Exit(0 if result.holds else 1)


def fikit(
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write everything there.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write fikit.md and fikit.json there.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the Markdown page there.")] = None,
    device: Annotated[str, typer.Option(help="Device that runs the kernels.")] = "compiled",
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
) -> None:
    """FIKIT (Wu, 2024) against default sharing; exit status 1 if a headline figure does not come out.

    All pairs of eleven recorded networks as services of high and low priority, on two GPUs: speed-ups beside the
    published ranges, what they depend on, and what wrong profiles cost.
    """
    from gpusched_env.experiments.lib.names import new_device
    from gpusched_env.experiments.lib.terminal import progress_bar
    from gpusched_env.experiments.reproduce.fikit.page import markdown, terminal
    from gpusched_env.experiments.reproduce.fikit.reproduction import reproduce, run_count

    new_device(device)
    with _files("fikit", json, out, docs) as write:
        with progress_bar(run_count(), "runs", "the tables") as on_progress:
            result = reproduce(workers, device, on_progress)
        write(result, terminal(result), markdown(result))
    raise typer.Exit(0 if result.holds else 1)


class _Reproduction(Protocol):
    """What was found, as data and in a line."""

    def as_dict(self) -> dict[str, Any]: ...

    def summary_line(self) -> str: ...


@contextlib.contextmanager
def _files(
    name: str, json: Path | None, out: Path | None, docs: Path | None
) -> Iterator[Callable[[_Reproduction, Any, str], None]]:
    """Find out early whether the files can be written; yields what prints a reproduction and writes them.

    It takes the reproduction, what to print, and the Markdown page.
    """
    from gpusched_env.experiments.lib.files import encoded, result_file
    from gpusched_env.experiments.lib.terminal import output_console

    data = [(json, "--json"), (out / f"{name}.json" if out else None, "--out")]
    pages = [(docs, "--docs"), (out / f"{name}.md" if out else None, "--out")]
    with contextlib.ExitStack() as stack:
        data_files = [stack.enter_context(result_file(path, option)) for path, option in data if path is not None]
        page_files = [stack.enter_context(result_file(path, option)) for path, option in pages if path is not None]

        def write(result: _Reproduction, printed: Any, page: str) -> None:
            output_console().print(printed)
            for file in data_files:
                file.write_bytes(encoded(result.as_dict()))
            for file in page_files:
                file.write_text(page, encoding="utf-8")
            typer.echo(result.summary_line())

        yield write
