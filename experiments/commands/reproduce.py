"""``gpusched reproduce``: simulate again what was recorded or published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    group = typer.Typer(no_args_is_help=True, help="Simulate again what was recorded or published, and compare.")
    group.command("recordings")(recordings)
    app.add_typer(group, name="reproduce")


def recordings(
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figures there.")] = None,
    docs: Annotated[Path | None, typer.Option(metavar="PATH", help="Write them as a Markdown page too.")] = None,
) -> None:
    """Compare the simulator with the shipped H100 recordings; exit status 1 if a figure is out of tolerance.

    Workloads alone, ResNet-50 inference beside training, and time-sliced processes.
    """
    from rich.console import Console

    from gpusched_env.experiments.output import result_file
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
