"""Options that several commands have: each is declared once, with its help."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

RANK, CHECK = "Rankings and trainings", "Checks of the simulator"
GAMES, PAGES = "Fleets, clusters, drawn scenarios, slices of a GPU", "Pages"
"""Groups of commands in the help of ``gpusched lab``."""
SCHEDULERS_HELP = (
    "Names (gpusched list schedulers), package.module:Name, file.py:Name or learned:PATH of a trained agent; options "
    "may follow, as in 'mps(share=50),fifo'. tuned:NAME: with the options that gpusched tune found. Groups: default, a "
    "dozen that differ, the best tuned one and the trained agent (the shipped one, or evaluate's MODEL); all that know "
    "no more than a scheduler can (without * in gpusched list schedulers); tuned. Default: {}."
)
Scenario = Annotated[str, typer.Argument(metavar="SCENARIO", help="Name (gpusched list scenarios), or a .yaml file.")]
Scenarios = Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Names, or .yaml files.")]
Schedulers = Annotated[str, typer.Option(metavar="A,B,...", help=SCHEDULERS_HELP.format("default"))]
AllSchedulers = Annotated[str, typer.Option(metavar="A,B,...", help=SCHEDULERS_HELP.format("all"))]
Seeds = Annotated[int, typer.Option(min=1, max=1_000_000, help="Episodes of each scheduler.")]
FirstSeed = Annotated[int, typer.Option(min=0, max=2**63 - 1, metavar="FIRST", help="First seed.")]
Simulator = Annotated[str, typer.Option(help="compiled (fast) or reference (the readable one).")]
Json = Annotated[Path | None, typer.Option(metavar="PATH", help="Write all figures there, as JSON.")]
Docs = Annotated[Path | None, typer.Option(metavar="PATH", help="Write a Markdown page there.")]
OutFolder = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the results.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace results that are there already where they are to go.")
]
Gpu = Annotated[str | None, typer.Option(help="Another GPU: a name (gpusched list gpus), or a .yaml file.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes. Default: one a CPU core.")]
Trust = Annotated[bool, typer.Option("--trust", help="Run code in a .zip that no training of ours wrote.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any field of the scenario, such as tenants.inference.arrivals.rate_per_s=200; may be repeated.",
    ),
]


def command_line() -> str:
    """How the program was called, for the record."""
    return shlex.join(["gpusched", *sys.argv[1:]])


def with_fields(command: Callable[..., None]) -> Callable[..., None]:
    """``command``, whose parameter ``options`` is a dataclass, as typer takes it: with a parameter for each field."""
    signature = inspect.signature(command, eval_str=True)
    kind = signature.parameters["options"].annotation
    hints = get_type_hints(kind, include_extras=True)
    own = {
        field.name: inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(kind)
    }

    def run(**given: Any) -> None:
        options = kind(**{name: given.pop(name) for name in own})
        command(**given, options=options)

    parameters = [
        parameter
        for name, given in signature.parameters.items()
        for parameter in (own.values() if name == "options" else [given.replace(kind=inspect.Parameter.KEYWORD_ONLY)])
    ]
    run.__doc__ = command.__doc__
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
