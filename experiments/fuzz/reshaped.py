"""Random forms: cases in which kernels may do their work with other tiles, or with more slices of each."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import Case, RandomCommands
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import moves_of
from gpusched_env.experiments.fuzz.workloads import SHORTEST_BLOCK_US, kernel_waves
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.events import Marks
from gpusched_env.workload.kernel import MOST_FORMS, Kernel
from gpusched_env.workload.tiling import check_tiles
from gpusched_env.workload.workload import Workload

RESHAPED = 0.15
"""Share of cases whose kernels have forms, of those whose kernels need no tiles."""
RESHAPED_TILES = 0.5
"""The same of others."""


def reshaped(dice: Dice, case: Case) -> Case:
    """A case that may be given forms, and then mostly has somebody who uses them."""
    needs_tiles = "synchronise" in case.scenario.commands
    if not case.workloads or not dice.chance(RESHAPED_TILES if needs_tiles else RESHAPED):
        return case
    gpu, player = case.gpu_spec(), case.player
    workloads = {name: _with_forms(dice, workload, gpu) for name, workload in case.workloads.items()}
    names = tuple(move.NAME for move in moves_of("forms"))
    if isinstance(player, RandomCommands):
        weights = {move.NAME: dice.pick(move.DRAWN_WEIGHTS) for move in moves_of("forms")}
        player = replace(player, weights=player.weights | weights)
    scenario = replace(case.scenario, commands=(*case.scenario.commands, *names))
    return replace(case, workloads=workloads, scenario=scenario, player=player)


def _with_forms(dice: Dice, workload: Workload, gpu: GpuSpec) -> Workload:
    """Some kernels with one to three forms each: kernels that are there, or new ones; if the tiles still match."""
    for row in range(len(workload.kernels)):
        for _ in range(dice.weighted({0: 2, 1: 2, 2: 1, MOST_FORMS: 1})):
            tried = _with_form(dice, workload, row, gpu)
            if _matches(tried):
                workload = tried
    return workload


def _with_form(dice: Dice, workload: Workload, row: int, gpu: GpuSpec) -> Workload:
    kernels = list(workload.kernels)
    kernel = kernels[row]
    others = [other for other in range(len(kernels)) if other != row and other not in kernel.forms]
    if others and dice.chance(0.3):
        form = dice.pick(others)
    else:
        form = len(kernels)
        kernels.append(_new_form(dice, replace(kernel, name=f"{kernel.name}_form{len(kernel.forms)}", forms=()), gpu))
    kernels[row] = replace(kernel, forms=(*kernel.forms, form))
    return replace(workload, kernels=tuple(kernels))


def _new_form(dice: Dice, kernel: Kernel, gpu: GpuSpec) -> Kernel:
    """The kernel with half or twice the rows or columns, or another number of slices."""
    columns, rows, slices = kernel.grid
    grid = dice.pick(
        (
            (max(1, columns // 2), rows, slices),
            (2 * columns, rows, slices),
            (columns, 2 * rows, slices),
            (columns, max(1, rows // 2), slices),
            (columns, rows, dice.integer(1, 4)),
        )
    )
    form = replace(kernel, grid=grid, duration_us=kernel.duration_us * dice.pick((1.0, 0.5, dice.number(0.3, 3.0))))
    return replace(form, duration_us=max(form.duration_us, SHORTEST_BLOCK_US * kernel_waves(form, gpu)))


def _matches(workload: Workload) -> bool:
    """Whether its kernels' tiles fit each other in all forms."""
    if any(len(kernel.forms) > MOST_FORMS for kernel in workload.kernels):
        return False
    try:
        for variant in workload.variants:
            check_tiles(workload, variant, Marks(variant))
    except InputError:
        return False
    return True
