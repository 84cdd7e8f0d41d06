"""What a random case may have besides: windows, masks, chains of tiles, throttling, other forms, cores of the CPU."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import Baseline, Case, Player, RandomCommands
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import moves_of
from gpusched_env.experiments.fuzz.workloads import SHORTEST_BLOCK_US, SOURCE, kernel_waves
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.launching import Capture
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.cores.spec import Core, CpuCores, Process
from gpusched_env.workload.dependent import check_tiles
from gpusched_env.workload.kernel import MOST_FORMS, Kernel
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import DEVICE_OPS, GraphNode, Marks, Op, OpKind, Segment, Variant, Workload


def giving(dice: Dice, player: Player, problems: str) -> Player:
    """A random player that gives the commands of some problems as often as is drawn; others as they are."""
    if not isinstance(player, RandomCommands):
        return player
    weights = {move.NAME: dice.pick(move.DRAWN_WEIGHTS) for move in moves_of(problems)}
    return replace(player, weights=player.weights | weights)


WINDOWS = 0.15
"""Share of cases in which launches pass a window."""
MOST_SEGMENTS = 3
MOST_STORAGES = 6


def has_place(workload: Workload) -> bool:
    """Whether a workload can pass a window, or be captured; drawn ones are made so that they can."""
    ops = [op for variant in workload.variants for op in variant.all_ops]
    plain = not any(op.kind is OpKind.GRAPH or op.children or op.tiles >= 0 for op in ops)
    return workload.source == SOURCE or (plain and not any(variant.threads for variant in workload.variants))


def with_window(dice: Dice, case: Case) -> Case:
    """A case whose launches pass a window."""
    window = KernelWindow(
        size=dice.log_integer(1, 64),
        streams=dice.log_integer(1, 16),
        depth=1 if dice.chance(0.4) else dice.log_integer(2, 16),
        launch_us=0.0 if dice.chance(0.3) else dice.number(0.1, 10.0),
        sync_us=0.0 if dice.chance(0.3) else dice.number(0.1, 10.0),
        insert_us=0.0 if dice.chance(0.5) else dice.number(0.05, 2.0),
        transfer_us=0.0 if dice.chance(0.5) else dice.number(0.1, 10.0),
        newer=None if dice.chance(0.5) else dice.log_integer(1, 64),
        checked_by=dice.pick(("window", "window", "application", "application", "nobody")),
    )
    player = case.player
    if isinstance(player, Baseline) and dice.chance(0.5):
        # The one scheduler of windows that makes choices of its own.
        player = Baseline(name="critical-path")
    scenario = replace(case.scenario, window=window, streams=0)
    return on_memory(dice, replace(case, player=player, scenario=scenario))


def on_memory(dice: Dice, case: Case) -> Case:
    """A case of plain programs with the memory that they touch. Shipped workloads stay as they are, theirs is not
    known."""
    tenants = tuple(replace(tenant, launch="eager", iteration_us=None) for tenant in case.scenario.tenants)
    return replace(
        case,
        scenario=replace(case.scenario, tenants=tenants),
        workloads={name: _on_memory(dice, workload) for name, workload in case.workloads.items()},
    )


def _on_memory(dice: Dice, workload: Workload) -> Workload:
    """What the first threads of a workload launch, some of it again and again, on random memory."""
    memory = _DrawnMemory(dice)
    variants = []
    for variant in workload.variants:
        ops = [_launched(op, workload.graphs) for op in variant.ops]
        ops += [op for op in ops if op.kind in DEVICE_OPS] * (dice.log_integer(1, 6) - 1)
        variants.append(Variant(ops=tuple(memory.touched(op) if op.kind in DEVICE_OPS else op for op in ops)))
    return replace(workload, variants=tuple(variants), graphs=())


def _launched(op: Op, graphs: Sequence[tuple[GraphNode, ...]]) -> Op:
    """A kernel without children and tiles; in place of a graph its first one."""
    if op.kind is not OpKind.GRAPH:
        return replace(op, children=(), tiles=-1)
    node = next(node for node in graphs[op.index] if node.kind is OpKind.KERNEL)
    return Op(OpKind.KERNEL, op.host_us, node.index, node.duration_us, stream=op.stream)


class _DrawnMemory:
    """The memory of a workload: a few storages, small enough for segments to meet."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._storages = dice.integer(1, MOST_STORAGES)
        self._bytes = dice.log_integer(1, 1000)
        self._unknown = dice.pick((0.0, 0.0, 0.1, 0.5))
        self._most_written = dice.integer(0, MOST_SEGMENTS)

    def touched(self, op: Op) -> Op:
        """A launch with what it touches."""
        return replace(op, reads=self._segments(MOST_SEGMENTS), writes=self._segments(self._most_written))

    def _segments(self, most: int) -> tuple[Segment, ...] | None:
        dice = self._dice
        if dice.chance(self._unknown):
            return None
        return tuple(self._segment() for _ in range(dice.integer(0, most)))

    def _segment(self) -> Segment:
        dice = self._dice
        first = dice.integer(0, self._bytes)
        return Segment(dice.integer(1, self._storages), first, dice.integer(first, self._bytes))


LAUNCHERS = 0.08
"""Share of cases in which the hosts of some tenants do nothing but launch."""
CAPTURES = 0.08
"""Share of cases whose programs are captured into graphs, of those that can be and have no window."""
PERSISTENT = 0.06
PERSISTENT_WINDOWS = 0.3
"""Share of cases in which all kernels run as tasks of one that stays: of those without a window, and with one."""

MASKED = 0.3
"""Share of cases whose streams of the scheduler's own have masks, of those with such streams and without a window."""
MOST_MASKS = 12
"""More than hardware holds queues of at a time."""


def adapted(dice: Dice, case: Case, *, capturable: bool) -> Case:
    """A case that is, most of the time, the same, and otherwise adapted in one or several of these ways."""
    if capturable and case.scenario.window is None and dice.chance(CAPTURES):
        case = replace(on_memory(dice, case), capture=_capture(dice))
    if dice.chance(LAUNCHERS):
        tenants = tuple(_launching(dice, tenant) for tenant in case.scenario.tenants)
        case = replace(case, scenario=replace(case.scenario, tenants=tenants))
    if dice.chance(PERSISTENT if case.scenario.window is None else PERSISTENT_WINDOWS):
        case = replace(case, task_us=_time_us(dice))
    if case.scenario.window is None and case.scenario.streams > 0 and dice.chance(MASKED):
        case = replace(case, masks=tuple(_mask(dice, case) for _ in range(dice.integer(1, MOST_MASKS))))
    return case


def _mask(dice: Dice, case: Case) -> tuple[int, int] | None:
    sms = case.gpu_spec().sms
    return None if dice.chance(0.2) else (dice.integer(0, sms - 1), dice.integer(1, sms))


def _capture(dice: Dice) -> Capture:
    return Capture(node_us=_time_us(dice), edge_us=_time_us(dice), per_input=dice.chance(0.7))


def _launching(dice: Dice, tenant: Tenant) -> Tenant:
    """Most of the time with a host that does nothing but launch, unless it launches graphs."""
    if tenant.launch == "graph" or dice.chance(0.3):
        return tenant
    return replace(tenant, iteration_us=None, host_us=_time_us(dice))


def _time_us(dice: Dice) -> float:
    return 0.0 if dice.chance(0.3) else dice.number(0.1, 10.0)


SYNCHRONISERS = ("cusync", "cusync-predicted")


def synchronising(dice: Dice, case: Case) -> Case:
    """A case of such programs with a look-ahead that shows pairs, and such a player."""
    scenario, player = case.scenario, case.player
    commands = scenario.commands
    if "preempt" not in commands and dice.chance(0.6):
        commands = (commands[0], "preempt", *commands[1:])
    scenario = replace(scenario, lookahead=dice.integer(3, 12), commands=commands)
    match player:
        case RandomCommands():
            often = {
                "launch": dice.number(1.0, 5.0),
                "synchronise": dice.pick((3.0, 30.0)),
                "preempt": dice.pick((0.0, 0.3, 2.0)),
            }
            player = replace(player, weights=player.weights | often, oldest=dice.pick((0.5, 0.9, 1.0)))
        case Baseline():
            # Its set-up is that of others: such a case needs no contexts of its own.
            player = replace(player, name=dice.pick(SYNCHRONISERS))
            scenario = replace(scenario, contexts="per-tenant" if dice.chance(0.3) else "shared")
        case _:
            pass
    return replace(case, scenario=scenario, player=player)


THROTTLED = 0.25
"""Share of cases in which tenants may be throttled."""
RESTARTED = 0.3
"""Share of those in which a partition is a process's own, which is started anew with another one."""


def throttled(dice: Dice, case: Case, kernel_us: float) -> Case:
    """A case that offers what acts on hosts; ``kernel_us``: about how long a kernel takes."""
    names = tuple(move.NAME for move in moves_of("hosts"))
    scenario = replace(
        case.scenario,
        commands=(*case.scenario.commands, *names),
        restart_us=max(0.1, kernel_us * dice.number(1.0, 30.0)) if dice.chance(RESTARTED) else 0.0,
        throttle_us=0.0 if dice.chance(0.4) else max(0.1, kernel_us * dice.number(0.1, 3.0)),
    )
    return replace(case, scenario=scenario, player=giving(dice, case.player, "hosts"))


RESHAPED = 0.15
"""Share of cases whose kernels have forms, of those whose kernels need no tiles."""
RESHAPED_TILES = 0.5
"""Share of cases whose kernels have forms, of those whose kernels need tiles."""


def reshaped(dice: Dice, case: Case) -> Case:
    """A case that may be given forms, and then mostly has somebody who uses them."""
    needs_tiles = "synchronise" in case.scenario.commands
    if not case.workloads or not dice.chance(RESHAPED_TILES if needs_tiles else RESHAPED):
        return case
    gpu = case.gpu_spec()
    workloads = {name: _with_forms(dice, workload, gpu) for name, workload in case.workloads.items()}
    names = tuple(move.NAME for move in moves_of("forms"))
    player = giving(dice, case.player, "forms")
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


CORES = 0.2
"""Share of cases in which cores share the GPU's memory."""
MOST_PERIODS = 2000.0
"""Periods of a core in an episode, at most."""


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
    return replace(case, scenario=scenario, player=giving(dice, case.player, "cores"))


def _process(dice: Dice, name: str, spec: GpuSpec, period_us: float) -> Process:
    """Bound by the CPU, or a hog of a hundredth to twice the memory, with one to a hundred thousand misses a period."""
    if dice.chance(0.3):
        return Process(name=name)
    misses_per_us = min(1e6, dice.log_integer(1, 100_000) / period_us)
    bytes_a_miss = spec.dram_bytes_per_us * dice.number(0.01, 2.0) / misses_per_us
    return Process(
        name=name, misses_per_us=misses_per_us, bytes_a_miss=min(1e6, max(1.0, bytes_a_miss)), counted=dice.chance(0.8)
    )
