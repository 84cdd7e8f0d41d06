"""Random cores of the CPU beside the GPU: hogs, hosts that hold locks, budgets and periods of every length."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.case import Case, RandomCommands
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import moves_of
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.cores.spec import Core, CpuCores, Process

CORES = 0.2
"""Share of cases in which cores share the GPU's memory."""
MOST_PERIODS = 2000.0
"""Of a core in an episode."""


def beside_cores(dice: Dice, case: Case, spec: GpuSpec, kernel_us: float) -> Case:
    """A case with cores; ``kernel_us``: about how long a kernel takes."""
    hosts = dice.shuffled([tenant.name for tenant in case.scenario.tenants])
    period_us = max(1.0, case.scenario.horizon_us / MOST_PERIODS, kernel_us * dice.number(0.1, 20.0))
    if dice.chance(0.3):
        period_us = float(max(1, round(period_us)))
    cores = CpuCores(
        cores=tuple(
            Core(
                number=number,
                host=hosts.pop() if hosts and dice.chance(0.5) else None,
                processes=tuple(_process(dice, f"p{i}", spec, period_us) for i in range(dice.integer(0, 3))),
                phase_us=0.0 if dice.chance(0.3) else period_us * dice.number(0.1, 2.0),
            )
            for number in dice.shuffled(list(range(dice.integer(1, 5))))
        ),
        period_us=period_us,
        kappa=1.0 if dice.chance(0.2) else dice.number(1.0, 4.0),
        saturation=dice.pick((1.0, 4.0)),
        rho=dice.pick((0.0, 0.0, 1.0, 3.0, dice.number(0.1, 5.0))),
        spins=dice.chance(0.6),
    )
    offered = tuple(move.NAME for move in moves_of("cores")) if dice.chance(0.8) else ()
    scenario = replace(case.scenario, cores=cores, commands=(*case.scenario.commands, *offered))
    player = case.player
    if isinstance(player, RandomCommands):
        weights = {move.NAME: dice.pick(move.DRAWN_WEIGHTS) for move in moves_of("cores")}
        player = replace(player, weights=player.weights | weights)
    return replace(case, scenario=scenario, player=player)


def _process(dice: Dice, name: str, spec: GpuSpec, period_us: float) -> Process:
    """Bound by the CPU, or a hog of a hundredth to twice the memory, with one to a hundred thousand misses a period."""
    if dice.chance(0.3):
        return Process(name=name)
    misses_per_us = min(1e6, dice.log_integer(1, 100_000) / period_us)
    bytes_a_miss = spec.dram_bytes_per_us * dice.number(0.01, 2.0) / misses_per_us
    return Process(
        name=name, misses_per_us=misses_per_us, bytes_a_miss=min(1e6, max(1.0, bytes_a_miss)), counted=dice.chance(0.8)
    )
