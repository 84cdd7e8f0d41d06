"""``gpusched record``: recordings of the GPU of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.experiments.lib.options import CHECK


def register(app: typer.Typer) -> None:
    """Add the command of this file to ``app``."""
    app.command("record", rich_help_panel=CHECK)(record)


def record(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the recordings.")],
    sets: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Of kernels, waves, launch, pairs, mixes, sequences (synthetic kernels), model_pairs and traces "
            "(networks of PyTorch), cache (networks with an empty L2), memory (programs with what their kernels read "
            "and write), sharing (inference beside training in slices and on streams), ends (when blocks of libraries' "
            "kernels leave their SMs). Default: all but these four.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the kernels and scenarios that are drawn.")] = 0,
    like: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Record the kernels and scenarios of this recording again."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A subset.")] = False,
    networks: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Networks of model_pairs, traces and memory. Default: all.")
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
