"""``gpusched reproduce`` and ``interference``: studies with a page each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import Docs, Json, OutFolder, Overwrite, Simulator, Workers
from gpusched_env.experiments.papers import find_paper, paper_names, stored_table


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help=f"One of {', '.join(paper_names())}.")] = None,
    json: Json = None,
    out: OutFolder = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
    simulator: Simulator = "compiled",
    workers: Workers = None,
    runs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep finished runs there; the same command goes on where it was ended."),
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on this Ray cluster, not in processes; local: on one of here."),
    ] = None,
    stored: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="One table of all papers whose pages are there, instead.")
    ] = None,
) -> None:
    """Simulate again what was recorded or published, and compare; exit status 1 if something does not come out.

    Without a name: says what there is, or what came out of all papers whose pages are --stored in a folder. A folder
    for the results gets NAME.json and NAME.md.
    """
    from gpusched_env.experiments.lib.files import write_file, writing
    from gpusched_env.experiments.lib.names import new_device
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar

    if stored is not None:
        output_console().print(stored_table(stored))
        return
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
        kept = None if runs is None else paper.kept(runs, simulator)
        with progress_bar(len(cells), "run", "the tables") as on_progress:
            result = paper.simulate(simulator, workers, on_progress, cells, kept, ray_address)
        output_console().print(result)
        for option in ("--json", "--out"):
            write_data(option, result.as_dict)
        for option in ("--docs", "--out"):
            write_page(option, result.markdown)
        folders = [path.parent for path in (docs, out and out / f"{name}.md") if path is not None]
        beside = {f"{name}-{picture}.svg": content for picture, content in result.pictures().items()} if folders else {}
        for attachment, rows in result.attachments().items() if folders else ():
            beside[result.attachment_file(attachment)] = rows.to_csv(index=False, float_format="%.6g").encode()
        if folders and result.below():
            beside[f"{name}-tables.csv"] = result.tables_csv().encode()
        if folders and result.marks:
            beside[f"{name}-criteria.csv"] = result.criteria_csv().encode()
        for folder in folders:
            for file, content in beside.items():
                write_file(folder / file, content, f"{file} beside --docs")
    typer.echo(result.summary_line())
    raise typer.Exit(0 if result.holds else 1)


def interference(
    given: Annotated[
        Path | None, typer.Option("--from", metavar="PATH", help="A file of --json: its pairs instead of new ones.")
    ] = None,
    model: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the fitted model there, as JSON.")] = None,
    json: Json = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
    workers: Workers = None,
) -> None:
    """Fit the model of who disturbs whom to simulated pairs, and judge it on recorded ones.

    Exit status 1 if it misses unseen networks by more than 8 % in the median, or recorded ones by more than 10 %. The
    simulations take an hour and a half of processor time.
    """
    import msgspec

    from gpusched_env.experiments.interference.pairs import SCHEMA, Simulated, simulate
    from gpusched_env.experiments.interference.result import Interference
    from gpusched_env.experiments.lib.files import read_struct, writing
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.ranking.made import check_together

    outputs = (("--model", model), ("--json", json), ("--docs", docs))
    with writing(*outputs, overwrite=overwrite) as write:
        with progress_bar(None) as on_progress:
            pairs = (
                simulate(workers=workers, on_progress=on_progress)
                if given is None
                else read_struct(
                    given, Simulated, SCHEMA, "no file of pairs", "gpusched lab interference --json writes one"
                )
            )
        if given is not None:
            check_together({str(given): pairs.made})
        result = Interference(pairs)
        write("--model", lambda: msgspec.to_builtins(result.model))
        write("--json", result.as_dict)
        write("--docs", result.markdown)
    output_console().print(result)
    typer.echo(result.summary_line())
    raise typer.Exit(0 if result.holds else 1)
