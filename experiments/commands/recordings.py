"""``gpusched lab record``, ``validate`` and ``calibrate``: recordings of a real GPU, and what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.options import (
    Docs,
    Gpu,
    Json,
    Overwrite,
    Schedulers,
    Seeds,
    Settings,
    Workers,
    command_line,
)

if TYPE_CHECKING:
    from gpusched_env.experiments.live.result import Live
    from gpusched_env.experiments.validate.results import Validation


def record(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the recordings.")],
    sets: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Of kernels, waves, launch, pairs, mixes, sequences (synthetic kernels), model_pairs and traces "
            "(networks of PyTorch), cache (networks with an empty L2), memory (programs with what their kernels read "
            "and write), sharing (inference beside training in slices and on streams), processes (programs that Python "
            "launches, in slices and on streams), ends (when blocks of libraries' kernels leave their SMs), "
            "scatters (kernels that add to drawn places, short kernels behind long grids), capped (a client held to "
            "some SMs). Default: all but these seven.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the kernels and scenarios that are drawn.")] = 0,
    like: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Record the kernels and scenarios of this recording again."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A subset.")] = False,
    networks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Networks of model_pairs, traces and memory. Default: all; with processes their programs.",
        ),
    ] = None,
    drawn: Annotated[
        int | None,
        typer.Option(
            metavar="SEED", min=0, help="Networks of torchvision that no earlier recording has, in place of --networks."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")] = False,
) -> None:
    """Record the GPU of this machine, for validate and calibrate: synthetic kernels and networks, alone and together.

    Needs an NVIDIA GPU that nothing else uses, the extra gpu, and for networks PyTorch, torchvision, transformers and
    timm. Rows are written as they come; an interrupted recording goes on with --resume.
    """
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.terminal import progress_bar
    from gpusched_env.experiments.record.run import SETS, RecordingPlan
    from gpusched_env.experiments.record.run import record as run

    if drawn is not None and networks is not None:
        raise InputError("--drawn says which networks are recorded; leave out --networks")
    plan = RecordingPlan(
        folder=folder,
        sets=SETS if sets is None else _names(sets),
        seed=seed,
        like=like,
        quick=quick,
        networks=_names(networks or ""),
        drawn=drawn,
        resume=resume,
    )
    done: dict[Path, int] = {}
    with progress_bar(None, "row", "") as tell:

        def told(path: Path, count: int) -> None:
            done[path] = count
            tell(sum(done.values()), 0.0)

        run(plan, told)
    for path, count in done.items():
        typer.echo(f"{path}: {count}")


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())


PAIRS = "pairs beside --docs"


def validate(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|SCENARIO...",
            help="Folder with kernels.jsonl and pairs, mixes or sequences, or with model_pairs.jsonl; "
            "with --live, scenarios.",
        ),
    ],
    gpu: Gpu = None,
    live: Annotated[
        bool, typer.Option("--live", help="Run schedulers on the GPU of this machine, and in simulation.")
    ] = False,
    schedulers: Schedulers = "default",
    seeds: Seeds = 3,
    settings: Settings = None,
    json: Json = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for validation.html. Default: results/validation, or the next free."),
    ] = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also predict with each mechanism switched off (takes longer).")
    ] = False,
    workers: Workers = None,
) -> None:
    """Predict recordings of a real GPU and compare; exit status 1 if an error is beyond its limit.

    Measured times are read for the comparison only. With --live, schedulers drive the GPU of this machine through CuPy
    and the simulated one on the same seeds (--schedulers, --seeds, --set; --json is written after every scenario).
    """
    from gpusched_env.experiments.lib.files import free_folder, refuse_existing, writing
    from gpusched_env.experiments.validate import page

    if live:
        refuse_existing(json, "--json", overwrite=overwrite)
        _live(what, schedulers, seeds, gpu, settings or [], json, docs, workers)
        return
    if len(what) != 1 or gpu is None:
        raise InputError("recordings are those of one folder and of a GPU, which --gpu names; --live takes scenarios")
    home = out if out is not None else free_folder(Path("results/validation"))
    pairs = None if docs is None else docs.with_name(f"{docs.stem}-pairs.csv")
    targets = (("--out", home / "validation.html"), ("--json", json), ("--docs", docs), (PAIRS, pairs))
    with writing(*targets, overwrite=overwrite) as write:
        validation = _recordings(Path(what[0]), gpu, ablation, workers)
        write("--out", page.html(validation))
        write("--json", validation.as_dict)
        write("--docs", lambda: validation.markdown("" if pairs is None else pairs.name))
        write(PAIRS, validation.pairs_csv)
    typer.echo(f"Written to {home / 'validation.html'}")
    typer.echo(validation.summary_line())
    raise typer.Exit(0 if validation.holds else 1)


def carried_over(
    first: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Recordings (*.workload.json.gz, or without .gz) of one GPU.")
    ] = None,
    second: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Recordings of the same networks on another.")
    ] = None,
    kernels: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Kernels that were measured on several GPUs, a row each; .gz or not."),
    ] = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
) -> None:
    """Carry recorded networks, or single kernels, over to other GPUs, and compare with what was measured there.

    Exit status 1 if an error of networks is beyond its limit.
    """
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.experiments.validate import carried, products

    if (first is None) != (second is None) or (first is None and kernels is None):
        raise InputError("carry-over compares recordings in two folders, or kernels in a table: give two, or --kernels")
    if docs is not None and first is None:
        raise InputError("--docs: the page is about networks and kernels; give two folders of recordings as well")
    with writing(("--docs", docs), overwrite=overwrite) as write:
        found = [] if first is None or second is None else carried.both_ways(first, second)
        measured = None if kernels is None else products.read_measured(kernels)
        tables = [carried.summary(found), carried.by_length(found)] if found else []
        if measured is not None:
            tables += products.tables(measured)
        if docs is not None:
            write("--docs", carried.markdown(found, measured, command_line()))
    console = output_console()
    for table in tables:
        console.print(table)
    raise typer.Exit(0 if not found or carried.within_limits(found) else 1)


def _live(
    scenarios: list[str],
    schedulers: str,
    seeds: int,
    gpu: str | None,
    settings: list[str],
    json: Path | None,
    docs: Path | None,
    workers: int | None,
) -> None:
    """Schedulers on the GPU of this machine."""
    from gpusched_env.baselines.registered import split_specs
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.live import page
    from gpusched_env.experiments.live.run import run_live

    with progress_bar(None) as on_progress:
        found = run_live(
            scenarios,
            split_specs(schedulers),
            seeds,
            json,
            gpu=gpu,
            settings=settings,
            workers=workers,
            on_progress=on_progress,
            command=command_line(),
        )
    for table in (*page.tables(found), page.summary([found])):
        output_console().print(table)
    if docs is not None:
        _write_page([found], docs)


def _write_page(lives: Sequence[Live], docs: Path, inputs: Sequence[Path] = ()) -> None:
    """The page, and beside it its picture and the long tables."""
    from gpusched_env.experiments.lib.pages import write_page
    from gpusched_env.experiments.live import page
    from gpusched_env.experiments.live.page import live_svg

    picture, tables = f"{docs.stem}.svg", f"{docs.stem}.csv"
    contents: dict[str, bytes | str] = {docs.name: page.markdown(lives, picture, tables), picture: live_svg(lives)}
    write_page(docs, {**contents, tables: page.all_tables(lives)}, inputs)


def _recordings(folder: Path, gpu: str, ablation: bool, workers: int | None) -> Validation:
    """Recordings in a folder, predicted and printed."""
    from gpusched_env.experiments.lib.terminal import output_console, progress_bar
    from gpusched_env.experiments.validate.recordings import read_recordings
    from gpusched_env.experiments.validate.results import ValidationRun
    from gpusched_env.hardware.specs import load_gpu

    recordings = read_recordings(folder, load_gpu(gpu))
    for reason in recordings.skipped:
        typer.secho(f"skipped: {reason}", err=True)
    run = ValidationRun(recordings, gpu, ablation=ablation)
    with progress_bar(len(run), "simulation", "the errors") as on_progress:
        validation = run.run(workers, on_progress)
    output_console().print(validation)
    return validation


def live_page(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Result files of validate --live --json.")],
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the Markdown page there.")],
) -> None:
    """Write a page of schedulers on a real GPU beside what was predicted, with picture and tables, from results."""
    from gpusched_env.experiments.live.result import read_live
    from gpusched_env.experiments.ranking.made import check_together

    lives = [read_live(file) for file in files]
    check_together({str(file): live.made for file, live in zip(files, lives, strict=True)})
    _write_page(lives, docs, files)


def calibrate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Recordings: waves, kernels and launch, .jsonl or .jsonl.gz.")
    ],
    gpu: Annotated[
        str, typer.Option(help="Specification to start from: a name (gpusched list gpus), or a .yaml file.")
    ],
    out: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Write the fitted values there.")] = None,
    json: Json = None,
    overwrite: Overwrite = False,
    docs: Docs = None,
) -> None:
    """Fit instruction costs, reachable DRAM bandwidth and gaps; exit status 1 if kernels alone miss by over 5 %."""
    from datetime import date

    from rich.console import Console

    from gpusched_env.experiments.calibrate import report
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.hardware.specs import load_gpu

    spec = load_gpu(gpu)
    with writing(("--out", out), ("--json", json), ("--docs", docs), overwrite=overwrite) as write:
        with Console(stderr=True).status("Fitting"):
            result = report.calibrate(folder, spec)
        write("--out", result.as_yaml(date.today()))
        write("--json", result.as_dict)
        write("--docs", result.markdown)
    console = output_console()
    console.print(result)
    for note in result.notes():
        console.print(note, highlight=False)
    typer.echo(result.summary_line())
    raise typer.Exit(0 if result.holds else 1)
