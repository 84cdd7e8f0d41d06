"""``gpusched lab fleet``: dispatchers on a fleet of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpusched_env.experiments.lib.options import GAMES, FirstSeed, Json, Overwrite, with_fields
from gpusched_env.games.fleet.experiments.cluster_command import cluster
from gpusched_env.games.fleet.experiments.queue_command import cluster_queue, train_cluster_queue

if TYPE_CHECKING:
    from gpusched_env.games.fleet.device import FleetDispatcher, FleetRun
    from gpusched_env.games.fleet.problem import FleetProblem


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """Options of what is simulated."""

    dispatchers: Annotated[
        str,
        typer.Option(metavar="A,B,...", help="Of no-colocation, separate, first-fit, gslice, gpucolo, with options."),
    ] = "no-colocation,gslice,gpucolo"
    days: Annotated[float, typer.Option(min=0.01, max=57.0, help="Length.")] = 7.0
    gpus: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Of 32 GB. Default: 6500, with --seconds 16 of 80 GB.")
    ] = None
    scale: Annotated[float, typer.Option(min=0.0001, max=10.0, help="Of the drawn jobs; 1 is for 6,500 GPUs.")] = 1.0
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, max=3600.0, help="A small fleet for so long, whose jobs run recorded programs."),
    ] = None
    blocks: Annotated[bool, typer.Option("--blocks", help="Simulate its GPUs block by block; needs --seconds.")] = False
    seed: FirstSeed = 0
    rates: Annotated[str, typer.Option(help="block-level, or published: GPUColo's Figure 6.")] = "block-level"
    pai: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="INSTANCES SENSORS", help="Alibaba's tables (pai_instance_table.csv, pai_sensor_table.csv)."
        ),
    ] = None
    philly: Annotated[Path | None, typer.Option(metavar="PATH", help="Philly's cluster_job_log.")] = None
    shards: Annotated[int | None, typer.Option(min=1, help="Advance the GPUs in so many shards.")] = None
    ray_address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Shards are actors of this Ray cluster; local: of one here.")
    ] = None
    json: Json = None
    overwrite: Overwrite = False


def register(lab: typer.Typer, page: typer.Typer) -> None:
    """Add the commands of fleets to ``gpusched lab``; they write no page of ``gpusched lab page``."""
    lab.command("fleet", rich_help_panel=GAMES)(with_fields(fleet))
    lab.command("cluster", rich_help_panel=GAMES)(with_fields(cluster))
    lab.command("cluster-queue", rich_help_panel=GAMES)(with_fields(cluster_queue))
    lab.command("train-cluster-queue", rich_help_panel=GAMES)(with_fields(train_cluster_queue))


def fleet(options: FleetOptions) -> None:
    """Run dispatchers on a fleet of GPUs: GPUs in use, SLOs missed, how long training takes.

    Jobs are drawn with the statistics of Alibaba's trace, unless a trace is given.
    """
    from gpusched_env.baselines.registered import split_specs
    from gpusched_env.display.table import Table
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.games.fleet.baselines.registry import DISPATCHERS, make_dispatcher
    from gpusched_env.hardware.power import J_A_KWH

    made = {spec: make_dispatcher(spec) for spec in split_specs(options.dispatchers)}
    if not made:
        raise InputError(f"--dispatchers {options.dispatchers!r}: names none; known: {', '.join(DISPATCHERS.names())}")
    problem = _problem(options)
    with writing(("--json", options.json), overwrite=options.overwrite) as write:
        found = {name: _figures(_run(dispatcher, problem, options)) for name, dispatcher in made.items()}
        rows = [
            (
                *(name, f"{of['gpus']:.0f}", f"{of['jobs']:.0f}", f"{of['violations']:.1%}"),
                *(f"{of['late_requests']:.1%}", f"{of['energy_j'] / J_A_KWH:.0f}"),
            )
            for name, of in found.items()
        ]
        heads = ("dispatcher", "GPUs in use", "jobs on GPUs", "violations", "late requests", "energy, kWh")
        output_console().print(Table(problem.name, heads, rows))
        level = "blocks" if options.blocks else "rates"
        head = {"schema": "gpusched-fleet/1", "level": level, "rates": options.rates}
        write("--json", lambda: {**head, "dispatchers": found})


def _problem(options: FleetOptions) -> FleetProblem:
    from gpusched_env.errors import InputError
    from gpusched_env.games.fleet.co_location import shipped_rates
    from gpusched_env.games.fleet.experiments.levels import SmallFleet
    from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
    from gpusched_env.games.fleet.workload.importing import ImportedJobs, read_pai, read_philly
    from gpusched_env.games.fleet.workload.jobs import DAY_US, MOST_GB, FleetTrace

    if options.pai is not None and options.philly is not None:
        raise InputError("--pai and --philly: a fleet has the jobs of one trace")
    traced = options.pai is not None or options.philly is not None
    if options.seconds is not None and not traced:
        gpus = options.gpus or SmallFleet.gpus
        wanted = round(gpus * SmallFleet.jobs / SmallFleet.gpus)
        return SmallFleet(gpus=gpus, jobs=wanted, seconds=options.seconds, rates=options.rates).problem(options.seed)
    if options.seconds is not None or options.blocks:
        raise InputError("--blocks needs --seconds, without --pai and --philly: jobs of traces have no programs")
    imported = ImportedJobs()
    if options.pai is not None:
        name, jobs = "Jobs of Alibaba's trace", read_pai(*options.pai, imported)
    elif options.philly is not None:
        name, jobs = "Jobs of Philly's trace", read_philly(options.philly, imported=imported)
    else:
        trace = FleetTrace(days=options.days, scale=options.scale)
        name, jobs = "Drawn jobs", trace.draw(options.seed)
    if imported.left_out:
        typer.echo(f"{name}: {imported.said()}", err=True)
    kinds = (GpuKind("V100M32", options.gpus or 6500, MOST_GB),)
    return FleetProblem(name, jobs, kinds, shipped_rates(options.rates), round(options.days * DAY_US))


def _run(dispatcher: FleetDispatcher, problem: FleetProblem, options: FleetOptions) -> FleetRun:
    from gpusched_env.errors import InputError, needs
    from gpusched_env.games.fleet.device import run_fleet
    from gpusched_env.games.fleet.experiments.levels import BlockLevel, run_in_shards

    level = BlockLevel() if options.blocks else None
    if options.shards is None and options.ray_address is None:
        return run_fleet(dispatcher, problem, blocks=None if level is None else level(problem))
    try:
        return run_in_shards(dispatcher, problem, options.shards or 1, options.ray_address, level)
    except ModuleNotFoundError as error:
        raise InputError(needs("--ray-address", "ray")) from error


def _figures(run: FleetRun) -> dict[str, Any]:
    return {
        "gpus": run.gpus,
        "jobs": float(run.running.mean()),
        "violations": run.violations,
        "late_requests": run.late_requests,
        "training_stretch": run.training_stretch,
        "energy_j": run.energy_j,
    }
