"""The memory of one environment: allocation, resets, growth, snapshots, and what Python reads of it.

All its records lie in one block, the first of them holds the addresses of the others. Tables and the log grow on
demand: an environment that finds one too small stops and says so, and goes on when it has grown.
"""

from __future__ import annotations

import copy
from collections import Counter, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.entry import begin_hosts, compile_units
from gpusched_env.devices.compiled.members import BITS, words_for
from gpusched_env.devices.compiled.sections import (
    Sizes,
    allocate,
    class_count,
    copy_front,
    copy_table,
    log_margin,
    needed,
)
from gpusched_env.devices.compiled.seeding import SCRATCH as SCRATCH_WORDS
from gpusched_env.devices.compiled.seeding import key_of
from gpusched_env.devices.compiled.tables import ProblemTables, tabulate
from gpusched_env.devices.rules import world as logs
from gpusched_env.devices.rules.meter import costs_of
from gpusched_env.errors import InputError
from gpusched_env.hardware.clock import NEVER
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.commands import NOTHING
from gpusched_env.scheduling.guards import OneThread, Sealed, Uncopied, read_only_copy
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.synchronising import held_slots
from gpusched_env.scheduling.timeline import DETAILS, Detail, Timeline
from gpusched_env.workload.cores.ticking import core_tables
from gpusched_env.workload.host import NO_LIMIT_UNSTARTED
from gpusched_env.workload.tenant import MOST_JOBS, too_many_jobs

FEW_ROWS: Final = 64
"""Rows that tables of what there is have room for at first."""
GROWTH: Final = 2
"""Factor by which a table grows. To grow takes as long as hundreds of decisions, and what is too much stays."""
IN_ENV: Final = (
    "clients", "threads", "marks", "streams", "queues", "randoms", "jobs", "launches", "flights", "tilings",
    "semaphores", "ended_slices", "saved_blocks", "aheads", "edges", "timers", "heap", "contexts", "sets", "log",
    "outbox", "cores", "processes", "given",
)  # fmt: skip
IN_CONTEXT: Final = ("channels", "heads", "queue", "grids", "used", "classes", "class_ends", "kinds", "members", "rows")
"""Sections of a context, in their order; those of context i are called ``classes.i`` and so on."""
CHAINED: Final = {
    "launches": ("launch", "after"),
    "flights": ("flight", "slot"),
    "edges": ("edge", "next_in"),
    "aheads": ("ahead", "after"),
}
"""Sections of slots: what one is called, and the field that links the free ones."""
BY_LAUNCH: Final = {"semaphores": "semaphores", "ended_slices": "slices", "saved_blocks": "saved"}
"""Sections of which each launch has a part, and its size in :class:`Sizes`."""
SCRATCH: Final = ("sets",)
"""Sections whose contents last for one call."""
UNCLEARED: Final = (
    *SCRATCH, "log", "classes", "class_ends", "kinds", "members", "rows", "grids", "launches", "flights", "tilings",
    "semaphores", "ended_slices", "saved_blocks", "edges", "aheads",
)  # fmt: skip
"""Sections that hold nothing at a reset that is read before it is written, or that are cleared slot by slot."""
WITH_ADDRESSES: Final = ("env", "contexts")
"""Sections that start otherwise in each environment of a problem, as they hold addresses."""


def _tuple_of(name: str, dtype: np.dtype[Any], *more: str) -> Any:
    """Named tuples of the plain numbers in a record, and of ``more``."""
    make: Any = namedtuple
    return make(name, (*(dtype.names or ()), *more))


_ENV_FIELDS: Any = layout.ENV.fields
_COMMANDS, _NOW = (int(_ENV_FIELDS[name][1]) // 8 for name in ("commands", "now_ps"))
"""Which words of an environment's record these are."""
_Client = _tuple_of("_Client", layout.CLIENT)
_Core = _tuple_of("_Core", layout.CORE)
_World = _tuple_of("_World", layout.ENV, "clients", "cores", "rules")
"""An environment, as texts that both devices share read it."""


@dataclass(frozen=True, slots=True)
class Saved(Sealed):
    """The state of an environment, to go back to; can be pickled."""

    problem: Problem
    sizes: Sizes
    sections: dict[str, NDArray[Any]]
    """Copies that cannot be written to: numbers in them are places in memory."""
    timeline: Timeline

    def __post_init__(self) -> None:
        object.__setattr__(self, "sections", {name: read_only_copy(section) for name, section in self.sections.items()})


class Arena(Uncopied, OneThread):
    """The memory of one environment. ``reset`` comes first."""

    problem: Problem
    _numbers: NDArray[np.int64]
    """Words of :attr:`env`, of which one is read faster still than of :attr:`envs`."""

    def __init__(self) -> None:
        self.address = 0
        """Address of the ``ENV`` record; changes when the arena grows."""
        self.timeline = Timeline()
        self.given: NDArray[np.int64]
        """Words of the command that is to be carried out (:func:`~gpusched_env.scheduling.legality.write_numbers`)."""
        self._sizes: Sizes | None = None
        self._sections: dict[str, NDArray[Any]] = {}
        self._start: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]] = []
        """Bytes of sections, and what they are at the start of an episode, which environments of a problem share."""
        self._start_of: tuple[Problem, Detail] | None = None
        """Of which episodes :attr:`_start` is the start; ``None``: it is not known."""
        self._room: dict[str, NDArray[np.float64]] = {}

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def env(self) -> np.void:
        """The record of what there is one of (:data:`~gpusched_env.devices.compiled.layout.ENV`), live."""
        record: np.void = self.envs[0]
        return record

    @property
    def envs(self) -> NDArray[np.void]:
        """The record of :attr:`env` as a row, of which one number is read much faster."""
        if not self._sections:
            raise InputError("this device has no episode yet: call reset() first")
        return self._sections["env"]

    @property
    def place(self) -> tuple[int, int]:
        """Commands so far, and simulated time in picoseconds."""
        numbers = self._numbers
        return numbers.item(_COMMANDS), numbers.item(_NOW)

    @property
    def clients(self) -> NDArray[np.void]:
        """The tenants at run time (:data:`~gpusched_env.devices.compiled.layout.CLIENT`), live."""
        return self._sections["clients"][: len(self.problem.programs)]

    def table(self, name: str, look: Callable[[int, NDArray[np.float64]], int], columns: int) -> NDArray[np.float64]:
        """A table of what there is now, shape ``(rows, columns)``, over ``bytes``: nobody can write to it.

        Args:
            name: whose room is used again; it grows with what there is.
            look: fills a table as far as there is room, and gives the number of rows. There is room for all tenants,
                their pending launches that are shown, and cores.
        """
        room = self._room.get(name)
        if room is None or len(room) < self._least_rows:
            room = self._room[name] = np.empty((self._least_rows, columns))
        rows = look(self.address, room)
        if rows > len(room):
            room = self._room[name] = np.empty((2 * rows, columns))
            look(self.address, room)
        return read_only_copy(room[:rows])

    def costs(self) -> Costs:
        """The time integrals up to the present. A copy: reading leaves no trace."""
        numbers, cores = self.env.item(), self._sections["cores"][: self.problem.scenario.core_count]
        tables = [_Client(*row) for row in self.clients.tolist()], [_Core(*row) for row in cores.tolist()]
        world = _World(*numbers, *tables, SimpleNamespace(cores=len(cores)))
        return costs_of(world, over=bool(world.over))

    def section(self, name: str) -> NDArray[np.void]:
        """The records of one kind (:data:`IN_ENV`), live."""
        return self._sections[name]

    def held(self) -> list[str]:
        """Launches whose blocks wait for tiles of another, one sentence each, in order of id."""
        sections, sizes, found = self._sections, self._sizes_now, []
        for number, context in enumerate(sections["contexts"]):
            rows = sections[f"rows.{number}"].reshape(-1, class_count(sizes))
            for place in sections[f"used.{number}"]["value"][: int(context["grids"])].tolist():
                grid = sections[f"grids.{number}"][place]
                blocks: Counter[int] = Counter()
                for c in range(1, int(context["classes"])):
                    sm = sections[f"classes.{number}"][c]
                    mine = rows[: int(sm["rows"]), c]
                    for row in mine[(mine["grid"] == place) & (mine["held"] == 1)]:
                        blocks[int(row["number"])] += int(row["blocks"] * sm["sms"])
                tiling = sections["tilings"][int(grid["slot"])]
                if blocks and tiling["policy"]:
                    identity = int(sections["launches"]["identity"][int(grid["slot"])])
                    shape = self.problem.kernels[identity].kernel.grid
                    ids = int(grid["launch"]), int(tiling["producer_id"])
                    found.append((ids[0], held_slots(*ids, shape, blocks)))
        return [text for _, text in sorted(found)]

    def operation_of(self, id_: int) -> HostOp:
        """What an unfinished launch of a program carries out."""
        launch = self._sections["launches"][self._sections["launches"]["id"] == id_][0]
        return replace(self.operation(int(launch["op"])), identity=int(launch["identity"]))

    @property
    def operations(self) -> tuple[HostOp | None, ...]:
        """Rows of the table of operations; ``None``: it is none of a program."""
        return self._tables.operations

    def operation(self, row: int) -> HostOp:
        """What stands in a row of the table of operations; it is one of a program."""
        op = self._tables.operations[row]
        assert op is not None
        return op

    # ---- resets ----------------------------------------------------------------------------------

    def reset(self, problem: Problem, seed: int, detail: Detail) -> None:
        """The start of an episode: time 0, and nothing has happened yet."""
        if self._start_of is not None and self._start_of[0] is problem and self._start_of[1] == detail:
            self._take(problem)
            for section, start in self._start:
                section[:] = start
        else:
            self._set_to_start(problem, detail)
            kept = {name: self._at_start(name) for name in self._sections}
            self._start = [(section, self._start_bytes(name, section)) for name, section in kept.items()]
            self._start_of = problem, detail
        self.timeline = Timeline(detail)
        begin_hosts(self.address, key_of(seed, 0, 0), np.empty(SCRATCH_WORDS, np.uint64))

    def _at_start(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a section that are read in an episode before they are written: its start, but for the seed."""
        section, (kind, _, _) = self._sections[name], name.partition(".")
        if kind in CHAINED or kind not in UNCLEARED:
            used = len(section)
        else:
            used = {"classes": 1, "members": words_for(self._sizes_now.sms)}.get(kind, 0)
        return section[:used].view(np.uint8)

    def _start_bytes(self, name: str, section: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A copy of the bytes of a section, which is at its start; one for all environments in which it is the same."""
        if name in WITH_ADDRESSES:
            return section.copy()
        starts, key = self._tables.starts, (name, self._sizes_now)
        if key not in starts:
            starts.setdefault(key, section.copy())
        return starts[key]

    def _set_to_start(self, problem: Problem, detail: Detail) -> None:
        """Set the memory to the start of an episode, whatever it holds."""
        self._take(problem)
        self._make_room(needed(problem, self._tables, detail))
        sliced = problem.scenario.contexts == "per-tenant"
        for name, section in self._sections.items():
            if name.split(".")[0] not in UNCLEARED:
                section[:] = 0
        self._reset_env(sliced, detail)
        self._reset_tenants()
        self._reset_cores()
        for name in ("streams", "queues"):
            self._sections[name]["last_slot"] = layout.NONE
        self._sections["streams"]["first_ahead"] = layout.NONE
        self._sections["streams"]["last_end_ps"] = -NEVER
        self._sections["timers"]["place"] = layout.NONE
        for name in CHAINED:
            self._chain_free(name, 0)
        self._reset_contexts(sliced, each_wave=detail == "blocks")
        self._set_addresses()
        self._set_log_room(detail)

    def _reset_env(self, sliced: bool, detail: Detail) -> None:
        """Set the record of the environment for a new episode; ``sliced``: whether contexts take turns on the GPU."""
        env = self._sections["env"]
        env["to_complete"] = sum(program.tenant.jobs or 0 for program in self.problem.programs)
        self._sections["given"]["code"] = NOTHING
        env["detail"] = DETAILS.index(detail)
        env["done_ps"] = env["timer_ps"] = env["real_ps"] = NEVER
        env["once_ps"] = -1
        env["power_w"] = self.problem.gpu.power.idle_w
        env["open_streams"] = self._tables.problem["own_streams"]
        for name in ("started_first", "started_last", "copy_first"):
            env[name] = layout.NONE
        for engine in ("engine_first_0", "engine_first_1", "engine_last_0", "engine_last_1"):
            env[engine] = layout.NONE
        if sliced:
            env["slice_end_ps"] = int(self._tables.problem["slice_ps"][0])
            env["slicer_asleep"] = env["slicer_lonely"] = 1

    def _reset_tenants(self) -> None:
        """Set tenants and their hosts' threads for a new episode."""
        clients, programs = self._sections["clients"], self._tables.programs
        clients["host_job"] = layout.NONE
        clients["until"] = NO_LIMIT_UNSTARTED
        clients["l2_job"] = layout.NONE
        for name in ("pending_first", "pending_last", "running_first", "running_last"):
            clients[name] = layout.NONE
        clients["last_end_ps"] = -NEVER
        clients["partition_sms"] = self.problem.gpu.sms
        for name in layout.ONCE:
            clients[name] = -1
        clients["first_thread"][: len(programs)] = programs["first_thread"]
        clients["threads"][: len(programs)] = programs["threads"]
        for tenant, program in enumerate(programs):
            first = program["first_thread"]
            self._sections["threads"]["tenant"][first : first + program["threads"]] = tenant

    def _reset_cores(self) -> None:
        """Set the cores of the CPU, and the processes of one after the other, for a new episode."""
        self._sections["env"]["dram_left"] = self._tables.problem["dram_bytes_per_us"]
        scenario = self.problem.scenario
        tables: tuple[list[Any], ...] = core_tables(scenario.cores, [one.name for one in scenario.tenants])
        for name, objects in zip(("cores", "processes"), tables, strict=True):
            for record, one in zip(self._sections[name], objects, strict=False):
                for field, value in vars(one).items():
                    record[field] = value

    def _chain_free(self, name: str, first: int) -> None:
        """Make the slots of a table from ``first`` on free, in front of those that are."""
        section, env = self._sections[name], self._sections["env"]
        kind, link = CHAINED[name]
        if first == 0:
            section[:] = 0
        if name == "launches":
            section["id"][first:] = layout.NONE
        section[link][first:] = np.arange(first + 1, len(section) + 1)
        section[link][-1] = env[f"free_{kind}"][0] if first else layout.NONE
        if first and env[f"free_{name}"][0] == 0:
            section[link][-1] = layout.NONE
        env[f"free_{kind}"] = first
        env[f"free_{name}"] += len(section) - first

    def _reset_contexts(self, sliced: bool, each_wave: bool) -> None:
        sms = self.problem.gpu.sms
        contexts = self._sections["contexts"]
        contexts["active"][0] = 1
        contexts["classes"] = 1
        contexts["next_ps"] = NEVER
        contexts["jumping"] = not each_wave
        words = [(1 << max(0, min(BITS, sms - k * BITS))) - 1 for k in range(words_for(self._sizes_now.sms))]
        for number in range(len(contexts)):
            self._sections[f"channels.{number}"]["first"] = layout.NONE
            self._sections[f"channels.{number}"]["last"] = layout.NONE
            self._sections[f"channels.{number}"]["place"] = layout.NONE
            self._sections[f"used.{number}"]["value"] = np.arange(self._sizes_now.grids)
            idle = self._sections[f"classes.{number}"][:1]
            idle[:] = 0
            idle["sms"] = sms
            self._sections[f"class_ends.{number}"]["value"][0] = NEVER
            self._sections[f"members.{number}"]["bits"][: len(words)] = words

    def _take(self, problem: Problem) -> None:
        self.problem = problem
        self._tables: ProblemTables = tabulate(problem)
        scenario = problem.scenario
        self._least_rows = max(FEW_ROWS, len(problem.programs) * scenario.lookahead, scenario.core_count)

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
        self._start, self._start_of = [], None
        if self._sizes is None:
            self._sizes, self._sections = sizes, allocate(sizes)
            return
        old, old_sizes = self._used(), self._sizes
        self._sizes, self._sections = sizes, allocate(sizes)
        self._fill(old, old_sizes)

    def _fill(self, sections: dict[str, NDArray[Any]], sizes: Sizes) -> None:
        """Copy sections of smaller or equal sizes into the arena's."""
        for name, section in sections.items():
            kind = name.split(".")[0]
            if kind not in ("jobs", *SCRATCH, *BY_LAUNCH, "members", "rows", "timers", "heap"):
                copy_front(section, self._sections[name])
        now = self._sizes_now
        for number in range(sizes.contexts):
            for name, old, new in (
                ("members", words_for(sizes.sms), words_for(now.sms)),
                ("rows", class_count(sizes), class_count(now)),
            ):
                copy_table(sections[f"{name}.{number}"], old, self._sections[f"{name}.{number}"], new)
        for name, size in BY_LAUNCH.items():
            copy_table(sections[name], getattr(sizes, size), self._sections[name], getattr(now, size))
        self._fill_timers(sections, sizes)
        for tenant, client in enumerate(sections["clients"]):
            numbers = np.arange(client["first"], client["arrived"])
            target = self._sections["jobs"][tenant * now.jobs : (tenant + 1) * now.jobs]
            target[numbers % now.jobs] = sections["jobs"][tenant * sizes.jobs + numbers % sizes.jobs]
        for name in CHAINED:
            if len(self._sections[name]) > len(sections[name]):
                self._chain_free(name, len(sections[name]))
        self._set_addresses()

    def _fill_timers(self, sections: dict[str, NDArray[Any]], sizes: Sizes) -> None:
        """Copy the timers, whose owners are numbered for the problem, and the heap."""
        self._sections["timers"]["place"] = layout.NONE
        for name in ("timers", "heap"):
            copy_front(sections[name], self._sections[name])

    def _set_addresses(self) -> None:
        """Write down where everything is."""
        sections, sizes = self._sections, self._sizes_now
        env = sections["env"]
        self.address = _address(env)
        env["address"] = self.address
        self._numbers = env.view(np.int64)
        self.given = sections["given"].view(np.int64)
        for name in ("settle", "end", "dispatch"):
            env[f"{name}_at"] = compile_units()[name]
        env["problem_at"] = _address(self._tables.problem)
        for name in IN_ENV:
            env[f"{name}_at"] = _address(sections[name])
        env["job_mask"] = sizes.jobs - 1
        env["launch_room"] = sizes.launches
        env["edge_room"] = sizes.edges
        env["words"] = words_for(sizes.sms)
        env["semaphore_room"], env["slice_room"], env["saved_room"] = sizes.semaphores, sizes.slices, sizes.saved
        contexts = sections["contexts"]
        for number in range(sizes.contexts):
            context = contexts[number : number + 1]
            for name in IN_CONTEXT:
                context[f"{name}_at"] = _address(sections[f"{name}.{number}"])
            context["number"] = number
            context["words"] = words_for(sizes.sms)
            context["class_room"] = class_count(sizes)

    def _set_log_room(self, detail: Detail) -> None:
        self._sections["env"]["log_room"] = self._sizes_now.log - log_margin(self.problem, detail)

    # ---- what compiled code asks for -------------------------------------------------------------

    def serve(self, reason: int) -> None:
        """Do what the event loop stopped for: enlarge a table, or empty the log.

        Raises:
            InputError: more jobs are in the system than anybody can hold.
        """
        if reason == layout.FLUSH:
            self.flush()
            return
        names = ["jobs"] if reason == layout.GROW_JOBS else self._scarce()
        sizes = {name: getattr(self._sizes_now, name) for name in Sizes.__slots__}
        if reason == layout.GROW_JOBS and sizes["tenants"] * sizes["jobs"] >= MOST_JOBS:
            raise too_many_jobs(self.problem.scenario.name, int(self.env["now_ps"]) / 1e6)
        self._make_room(Sizes(**sizes | {name: GROWTH * sizes[name] for name in names}))

    def _scarce(self) -> list[str]:
        """The tables of slots of which there are no more than one event may take."""
        env, problem = self.env, self._tables.problem[0]
        least = {"launches": problem["margin"], "edges": problem["edge_margin"], "aheads": 0}
        return [name for name, number in least.items() if env[f"free_{name}"] <= number]

    def flush(self) -> None:
        """Move what the log holds to the timeline."""
        env = self.env
        count = int(env["log_rows"])
        if count == 0:
            return
        env["log_rows"] = 0
        rows = self._sections["log"][:count]
        whole = rows.view(np.int64).reshape(count, -1)
        floats = rows.view(np.float64).reshape(count, -1)
        kinds = whole[:, 0]
        for number, columns in enumerate(logs.tables(self.timeline)):
            mine = kinds == number
            if mine.any():
                first = 1 + layout.LOG_WHOLE
                columns.extend(whole[mine, 1 : 1 + columns.whole], floats[mine, first : first + columns.floats])

    # ---- snapshots -------------------------------------------------------------------------------

    def save(self) -> Saved:
        """The present state."""
        self.flush()
        kept = {name: section for name, section in self._used().items() if name != "log"}
        return Saved(self.problem, self._sizes_now, kept, copy.deepcopy(self.timeline))

    def _used(self) -> dict[str, NDArray[Any]]:
        """The sections without scratch, those of classes as far as there are any."""
        used = {}

        def count_of(number: str) -> int:
            return int(self._sections["contexts"]["classes"][int(number)])

        for name, section in self._sections.items():
            kind, _, number = name.partition(".")
            length = len(section)
            if kind in ("classes", "class_ends", "kinds", "members"):
                length = count_of(number) * (length // class_count(self._sizes_now))
            elif kind == "rows":
                most = self._sections[f"classes.{number}"]["rows"][: count_of(number)].max()
                length = int(most) * class_count(self._sizes_now)
            if kind not in SCRATCH:
                used[name] = section[:length]
        return used

    def load(self, saved: Saved) -> None:
        """Return to a state exactly.

        Raises:
            InputError: it is no saved state, or a section of it was replaced.
        """
        if not isinstance(saved, Saved):
            raise InputError(f"a compiled device goes back to what its snapshot() gave, not to {type(saved).__name__}")
        for name, section in saved.sections.items():
            if section.flags.writeable:
                raise InputError(f"a saved state was changed: {name} is not what was saved; save it again")
        self._take(saved.problem)
        self._make_room(saved.sizes)
        self._fill(saved.sections, saved.sizes)
        self.timeline = copy.deepcopy(saved.timeline)
        self._set_log_room(self.timeline.detail)


def _address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)
