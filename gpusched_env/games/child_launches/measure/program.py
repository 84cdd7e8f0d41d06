"""Measures kernels that launch kernels on the GPU at hand: ``python -m`` this module, see ``--help``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.measure.gpu import MeasuringGpu, Rows
from gpusched_env.games.child_launches.measure.applications import APPLICATIONS, application, measured_application
from gpusched_env.games.child_launches.measure.child_launches import measured, measured_overflow

LAUNCHES: Final = "launches"
OVERFLOW: Final = "overflow"
"""Parts without an application."""


def measure(
    json: Annotated[Path, typer.Option(metavar="PATH", help="Write the measurements there, after each part again.")],
    seed: Annotated[int, typer.Option(help="Of the applications' inputs.")] = 0,
) -> None:
    """Measure the cost of launches from the device, and three applications flat and with child launches."""
    try:
        gpu = MeasuringGpu()
        recording = gpu.recording()
        rows: list[Rows] = []
        write_file(json, recording.encoded(), "--json")
        for part in (LAUNCHES, *APPLICATIONS, OVERFLOW):
            for row in _measured(gpu, part, seed):
                typer.echo(msgspec.json.encode(row))
                rows.append(row)
            write_file(json, msgspec.structs.replace(recording, rows=rows).encoded(), "--json")
    except InputError as error:
        sys.exit(f"error: {error}")


def _measured(gpu: MeasuringGpu, part: str, seed: int) -> Iterator[Rows]:
    if part == LAUNCHES:
        return measured(gpu)
    if part == OVERFLOW:
        return measured_overflow()
    return measured_application(gpu, application(part, seed), seed)


if __name__ == "__main__":
    typer.run(measure)
