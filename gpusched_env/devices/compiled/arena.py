"""The memory of one environment: allocation, resets, growth, snapshots, and what Python reads of it.

All its records lie in one block, the first of them holds the addresses of the others. Rings and the log grow on
demand: an environment that finds one full stops and says so, and goes on when it has grown.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.commands import NOTHING
from gpusched_env.devices.compiled.entry import compile_units
from gpusched_env.devices.compiled.members import BITS, words_for
from gpusched_env.devices.compiled.randomness import generator_state
from gpusched_env.devices.compiled.tables import ProblemTables, tabulate
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.timeline import Columns, Detail, Timeline

ARRIVAL_STREAM, VARIATION_STREAM = 1, 2
"""Spawn keys of a tenant's random number generators, as in the reference device."""
DETAILS: Final[dict[Detail, int]] = {"jobs": layout.JOBS_ONLY, "kernels": layout.KERNELS, "blocks": layout.BLOCKS}
RING: Final = 16
"""First length of the rings of jobs and launches."""
RINGS: Final = {"jobs": ("completed", "arrived"), "launches": ("finished", "issued")}
"""Rings of a tenant, and the client's counters of their first and one past their last entry."""
LOG_ROWS: Final = 64
"""Rows of the log beyond what one event may write."""
LINE: Final = 64
"""Sections begin at multiples of a cache line, bytes."""
IN_ENV: Final = ("clients", "randoms", "jobs", "launches", "due", "chain", "engine_queue", "contexts", "sets", "log")
IN_CONTEXT: Final = ("channels", "heads", "queue", "grids", "classes", "kinds", "members", "rows")
"""Sections of a context, in their order; those of context i are called ``classes.i`` and so on."""
SCRATCH: Final = ("sets", "kinds")
"""Sections whose contents last for one call."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the memory of an environment has room for."""

    tenants: int
    contexts: int
    channels: int
    sms: int
    rows: int
    """Rows of residents on an SM."""
    jobs: int
    """In the system, of a tenant; a power of two."""
    launches: int
    """Issued, unfinished operations of a tenant; a power of two."""
    log: int

    def with_room_for(self, other: Sizes) -> Sizes:
        """The larger of both, field by field."""
        return Sizes(*(max(getattr(self, name), getattr(other, name)) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Saved:
    """The state of an environment, to go back to; can be pickled."""

    problem: Problem
    sizes: Sizes
    sections: dict[str, NDArray[Any]]
    timeline: Timeline


class Arena:
    """The memory of one environment. ``reset`` comes first."""

    problem: Problem

    def __init__(self) -> None:
        self.address = 0
        """Of the ``ENV`` record; changes when the arena grows."""
        self.timeline = Timeline()
        self._sizes: Sizes | None = None
        self._sections: dict[str, NDArray[Any]] = {}

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def env(self) -> np.void:
        """The record of what there is one of (:data:`~gpusched_env.devices.compiled.layout.ENV`), live."""
        record: np.void = self._sections["env"][0]
        return record

    @property
    def clients(self) -> NDArray[np.void]:
        """The tenants at run time (:data:`~gpusched_env.devices.compiled.layout.CLIENT`), live."""
        return self._sections["clients"][: len(self.problem.programs)]

    def launch(self, tenant: int, number: int) -> np.void:
        """An issued, unfinished operation of a tenant."""
        ring = self._sizes_now.launches
        record: np.void = self._sections["launches"][tenant * ring + number % ring]
        return record

    def identity(self, launch: np.void) -> int:
        """Kernel identity of an operation."""
        return int(self._tables.ops["identity"][launch["op"]])

    def costs(self) -> Costs:
        """The time integrals up to the present. A copy: reading leaves no trace."""
        env, clients = self.env, self.clients
        now = float(env["now_us"])
        elapsed = now - float(env["gpu_since_us"])
        costs = Costs(len(clients))
        costs.time_us = now
        costs.over = bool(env["over"])
        costs.arrived[:] = clients["arrived"]
        costs.completed[:] = clients["completed"]
        costs.slo_misses[:] = clients["slo_misses"]
        in_system = clients["arrived"] - clients["completed"]
        costs.jobs_us[:] = clients["jobs_us"] + in_system * (now - clients["jobs_since_us"])
        costs.busy_sm_us = float(env["busy_sm_us"] + env["busy_sms"] * elapsed)
        costs.dram_bytes = float(env["dram_bytes"] + env["traffic"] * elapsed)
        costs.energy_j = float(env["energy_j"] + env["power_w"] * elapsed * 1e-6)
        costs.makespan_us = min(now, float(env["done_us"]))
        return costs

    # ---- resets ----------------------------------------------------------------------------------

    def reset(self, problem: Problem, seed: int, detail: Detail) -> None:
        """The start of an episode: time 0, and nothing has happened yet."""
        self._take(problem)
        self._make_room(_needed(problem, detail))
        tenants = len(problem.programs)
        sliced = problem.scenario.contexts == "per-tenant"
        sections = self._sections
        for name, section in sections.items():
            if name.split(".")[0] not in (*SCRATCH, "log", "classes", "members", "rows"):
                section[:] = 0
        env = sections["env"]
        env["to_complete"] = sum(program.tenant.jobs or 0 for program in problem.programs)
        env["stalled"] = layout.NO_TENANT
        env["command"] = NOTHING
        env["detail"] = DETAILS[detail]
        env["done_us"] = env["timer_us"] = math.inf
        env["power_w"] = problem.gpu.power.idle_w
        clients = sections["clients"]
        clients["behind"] = layout.NO_TENANT
        clients["blocks"] = -1
        clients["saved_left"] = 1.0
        clients["started_us"] = math.inf
        clients["last_end_us"] = clients["stream_ended_us"] = -math.inf
        clients["partition_sms"] = problem.gpu.sms
        clients["partitioned_us"] = clients["preempted_us"] = -math.inf
        for tenant in range(tenants):
            for stream, key in enumerate((ARRIVAL_STREAM, VARIATION_STREAM)):
                sections["randoms"][2 * tenant + stream] = generator_state([seed, tenant, key])
        sections["due"]["value"] = math.inf
        self._reset_contexts(sliced, each_wave=detail == "blocks")
        # The processes begin at time 0: the slicer, then every tenant's arrivals and host thread.
        events = [(layout.SLICER_BEGINS, 0)] if sliced else []
        for tenant in range(tenants):
            events += [(layout.ARRIVALS_BEGIN, tenant), (layout.HOST_WAKES, tenant)]
        sections["chain"][: len(events)] = events
        env["chain_length"] = len(events)
        self._set_addresses()
        self._set_log_room(detail)
        self.timeline = Timeline(detail)

    def _reset_contexts(self, sliced: bool, each_wave: bool) -> None:
        sms = self.problem.gpu.sms
        contexts = self._sections["contexts"]
        contexts["active"][0] = not sliced
        contexts["classes"] = 1
        contexts["next_us"] = math.inf
        contexts["jumping"] = not each_wave
        words = [(1 << max(0, min(BITS, sms - k * BITS))) - 1 for k in range(words_for(self._sizes_now.sms))]
        for number in range(len(contexts)):
            self._sections[f"channels.{number}"]["first"] = layout.NO_TENANT
            self._sections[f"channels.{number}"]["last"] = layout.NO_TENANT
            idle = self._sections[f"classes.{number}"][:1]
            idle[:] = 0
            idle["sms"] = sms
            self._sections[f"members.{number}"]["bits"][: len(words)] = words

    def _take(self, problem: Problem) -> None:
        self.problem = problem
        self._tables: ProblemTables = tabulate(problem)

    # ---- memory ----------------------------------------------------------------------------------

    @property
    def _sizes_now(self) -> Sizes:
        assert self._sizes is not None, "reset comes first"
        return self._sizes

    def _make_room(self, needed: Sizes) -> None:
        """Enlarge what is smaller than ``needed``, keeping what it holds."""
        sizes = needed if self._sizes is None else self._sizes.with_room_for(needed)
        if sizes == self._sizes:
            return
        old, old_sizes = self._sections, self._sizes
        self._sizes = sizes
        self._sections = _allocate(sizes)
        if old_sizes is not None:
            self._fill(old, old_sizes)

    def _fill(self, sections: dict[str, NDArray[Any]], sizes: Sizes) -> None:
        """Copy sections of smaller or equal sizes into the arena's."""
        for name, section in sections.items():
            kind = name.split(".")[0]
            if kind not in (*RINGS, *SCRATCH, "due", "members", "rows", "engine_queue"):
                self._sections[name][: len(section)] = section
        now, tenants = self._sizes_now, sizes.tenants
        _copy_table(sections["due"], tenants, self._sections["due"], now.tenants)
        _copy_table(sections["engine_queue"], tenants + 1, self._sections["engine_queue"], now.tenants + 1)
        for number in range(sizes.contexts):
            for name, old, new in (
                ("members", words_for(sizes.sms), words_for(now.sms)),
                ("rows", sizes.rows, now.rows),
            ):
                _copy_table(sections[f"{name}.{number}"], old, self._sections[f"{name}.{number}"], new)
        for name, (first, end) in RINGS.items():
            old, new = getattr(sizes, name), getattr(now, name)
            for tenant, client in enumerate(sections["clients"]):
                numbers = np.arange(client[first], client[end])
                target = self._sections[name][tenant * new : (tenant + 1) * new]
                target[numbers % new] = sections[name][tenant * old + numbers % old]
        self._set_addresses()

    def _set_addresses(self) -> None:
        """Write down where everything is."""
        sections, sizes = self._sections, self._sizes_now
        env = sections["env"]
        self.address = _address(env)
        env["address"] = self.address
        for name in ("settle", "end", "dispatch"):
            env[f"{name}_at"] = compile_units()[name]
        env["problem_at"] = _address(self._tables.problem)
        for name in (
            "clients",
            "randoms",
            "jobs",
            "launches",
            "due",
            "chain",
            "engine_queue",
            "contexts",
            "sets",
            "log",
        ):
            env[f"{name}_at"] = _address(sections[name])
        env["tenants"] = sizes.tenants
        env["job_mask"] = sizes.jobs - 1
        env["launch_mask"] = sizes.launches - 1
        env["chain_ring"] = len(sections["chain"])
        env["words"] = words_for(sizes.sms)
        contexts = sections["contexts"]
        for number in range(sizes.contexts):
            context = contexts[number : number + 1]
            for name in IN_CONTEXT:
                context[f"{name}_at"] = _address(sections[f"{name}.{number}"])
            context["number"] = number
            context["words"] = words_for(sizes.sms)
            context["depth"] = sizes.rows

    def _set_log_room(self, detail: Detail) -> None:
        self._sections["env"]["log_room"] = self._sizes_now.log - log_margin(self.problem, detail)

    # ---- what compiled code asks for -------------------------------------------------------------

    def serve(self, reason: int) -> None:
        """Do what the event loop stopped for: grow a ring, or empty the log."""
        sizes = self._sizes_now
        if reason == layout.FLUSH:
            self.flush()
            return
        ring = "jobs" if reason == layout.GROW_JOBS else "launches"
        larger = {name: getattr(sizes, name) for name in sizes.__slots__} | {ring: 2 * getattr(sizes, ring)}
        self._make_room(Sizes(**larger))

    def flush(self) -> None:
        """Move what the log holds to the timeline."""
        env = self.env
        rows = self._sections["log"][: int(env["log_rows"])].tolist()
        env["log_rows"] = 0
        timeline = self.timeline
        tables: tuple[Columns, ...] = (
            timeline.jobs, timeline.kernels, timeline.sms, timeline.decisions, timeline.copies, timeline.blocks,
        )  # fmt: skip
        for table, *row in rows:
            columns = tables[int(table)]
            columns.add(*row[: len(columns.names)])

    # ---- snapshots -------------------------------------------------------------------------------

    def save(self) -> Saved:
        """The present state."""
        self.flush()
        kept = {}
        for name, section in self._sections.items():
            kind, _, number = name.partition(".")
            length = len(section)
            if kind in ("classes", "members", "rows"):
                used = int(self._sections["contexts"]["classes"][int(number)])
                length = used * (length // _class_count(self._sizes_now))
            # The log is empty, see above.
            if kind not in (*SCRATCH, "log"):
                kept[name] = section[:length].copy()
        return Saved(self.problem, self._sizes_now, kept, copy.deepcopy(self.timeline))

    def load(self, saved: Saved) -> None:
        """Return to a state exactly."""
        self._take(saved.problem)
        self._make_room(saved.sizes)
        self._fill(saved.sections, saved.sizes)
        self.timeline = copy.deepcopy(saved.timeline)
        self._set_log_room(self.timeline.detail)


def log_margin(problem: Problem, detail: Detail) -> int:
    """Most rows that one event may write to the log."""
    tenants = len(problem.programs)
    if detail == "jobs":
        return tenants
    margin = 4 * tenants + 16
    return margin + problem.gpu.sms * problem.gpu.limits.blocks if detail == "blocks" else margin


def _needed(problem: Problem, detail: Detail) -> Sizes:
    gpu, tenants = problem.gpu, len(problem.programs)
    return Sizes(
        tenants=tenants,
        contexts=tenants if problem.scenario.contexts == "per-tenant" else 1,
        channels=gpu.channels,
        sms=gpu.sms,
        rows=gpu.limits.blocks + 1,
        jobs=RING,
        launches=RING,
        log=LOG_ROWS + log_margin(problem, detail),
    )


def _class_count(sizes: Sizes) -> int:
    """Most classes of SMs: each SM one, the idle ones, and one being split off."""
    return sizes.sms + 2


def _allocate(sizes: Sizes) -> dict[str, NDArray[Any]]:
    """Sections of one block of memory, all zero; what is used most lies in front."""
    tenants, words, count = sizes.tenants, words_for(sizes.sms), _class_count(sizes)
    shapes: dict[str, tuple[np.dtype[Any], int]] = {
        "env": (layout.ENV, 1),
        "due": (layout.REAL, layout.PHASES * tenants),
        "clients": (layout.CLIENT, tenants),
        "contexts": (layout.CONTEXT, sizes.contexts),
        "randoms": (layout.RANDOM, 2 * tenants),
        "chain": (layout.EVENT, 8 * tenants + 8),
        "engine_queue": (layout.NUMBER, 2 * (tenants + 1)),
        "sets": (layout.WORD, layout.SETS * words),
    }
    for number in range(sizes.contexts):
        shapes |= {
            f"channels.{number}": (layout.CHANNEL, sizes.channels),
            f"heads.{number}": (layout.NUMBER, tenants + 1),
            f"queue.{number}": (layout.NUMBER, tenants + 1),
            f"grids.{number}": (layout.GRID, tenants),
        }
    shapes |= {
        "jobs": (layout.JOB, tenants * sizes.jobs),
        "launches": (layout.LAUNCH, tenants * sizes.launches),
        "log": (layout.LOG, sizes.log),
    }
    for number in range(sizes.contexts):
        shapes |= {
            f"classes.{number}": (layout.SM_CLASS, count),
            f"kinds.{number}": (layout.KIND, count),
            f"members.{number}": (layout.WORD, count * words),
            f"rows.{number}": (layout.ROW, count * sizes.rows),
        }
    places, end = {}, 0
    for name, (dtype, length) in shapes.items():
        places[name] = end
        end += -(-dtype.itemsize * length // LINE) * LINE
    memory = np.zeros(end + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return {
        name: memory[start + places[name] : start + places[name] + dtype.itemsize * length].view(dtype)
        for name, (dtype, length) in shapes.items()
    }


def _address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)


def _copy_table(source: NDArray[Any], width: int, target: NDArray[Any], wider: int) -> None:
    """Copy a flat table into one whose lines are longer."""
    lines = len(source) // width
    target[: lines * wider].reshape(lines, wider)[:, :width] = source.reshape(lines, width)
