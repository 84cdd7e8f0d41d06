"""``gpusched reproduce``: simulate again what was recorded or published."""

from __future__ import annotations

from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK, Docs, Json, OutFolder, Overwrite, Simulator, Workers
from gpusched_env.experiments.papers import find_paper, paper_names


def register(app: typer.Typer) -> None:
    """Add the commands of this file to ``app``."""
    app.command("reproduce", rich_help_panel=CHECK)(reproduce)


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help=f"One of {', '.join(paper_names())}.")] = None,
    json: Json = None,
    out: OutFolder = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
    simulator: Simulator = "compiled",
    workers: Workers = None,
) -> None:
    """Simulate again what was recorded or published, and compare; exit status 1 if something does not come out.

    Without a name: says what there is. A folder for the results gets NAME.json and NAME.md.
    """
    from gpusched_env.experiments.lib.files import write_file, writing
    from gpusched_env.experiments.lib.names import new_device
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar

    if name is None:
        for known in paper_names():
            typer.echo(f"{known}: {find_paper(known).introduction().splitlines()[0]}")
        return
    paper = find_paper(name)
    new_device(simulator)
    data = writing(("--json", json), ("--out", out and out / f"{name}.json"), overwrite=overwrite)
    pages = writing(("--docs", docs), ("--out", out and out / f"{name}.md"), overwrite=overwrite)
    with data as write_data, pages as write_page:
        cells = paper.cells()
        with progress_bar(len(cells), "run", "the tables") as on_progress:
            result = paper.simulate(simulator, workers, on_progress, cells)
        output_console().print(result)
        for option in ("--json", "--out"):
            write_data(option, result.as_dict)
        for option in ("--docs", "--out"):
            write_page(option, result.markdown)
        folders = [path.parent for path in (docs, out and out / f"{name}.md") if path is not None]
        beside = {f"{name}-{picture}.svg": content for picture, content in result.pictures().items()} if folders else {}
        for attachment, rows in result.attachments().items() if folders else ():
            beside[f"{name}-{attachment}.csv"] = rows.to_csv(index=False, float_format="%.6g").encode()
        if folders and result.below():
            beside[f"{name}-tables.csv"] = result.tables_csv().encode()
        for folder in folders:
            for file, content in beside.items():
                write_file(folder / file, content, f"{file} beside --docs")
    typer.echo(result.summary_line())
    raise typer.Exit(0 if result.holds else 1)
