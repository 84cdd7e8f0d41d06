"""ACS (Durvasula et al., arXiv 2401.12377, 2024; PACT 2024 as ACE): concurrent kernels of irregular graphs.

The paper runs Brax physics steps, dynamic and static networks of batch 1 on an RTX 3060 and in a simulator of an
RTX 3070 (46 SMs at 1.4 GHz), and reports speed-ups over one stream as class means and maxima. Here recorded PyTorch
programs stand in, each launch with the memory that it reads and writes; kernels are carried over from an H100 or an
H200. The application launches every 2.5 us, of the 2 to 5 us that such a host takes. As in the simulator that the paper
used, a kernel in a stream starts 4.4 us (5,000 cycles) after the one before it; whether the paper kept that default it
does not say, so all is shown with the 1 us of a real stream, too.

The programs are not the paper's, and three things about the paper's are not known:

* *What memory they touch.* PyTorch's allocator hands out memory again as soon as it is free, and who gets it waits for
  its last reader. JAX and cuDNN may do the same, the paper does not say. So there are two graphs of every program: with
  memory *used again* as recorded, and with memory *of its own* for each result. Of physics steps the latter has the
  very chains of a recording in which nothing is freed (`workload/memory.py`). The truth lies between the two.
* *How full they make the GPU.* Physics steps are run with as many chains of bodies side by side (32,768) as come
  nearest to the published occupancy, of recordings with 2,048 to 131,072. Networks in half precision, as recorded, lie
  far below theirs. So each is run in 1 to 64 times its recorded batch, by a rule that was written before any was
  played: in the one with which its occupancy in one stream comes nearest to the 39 % that the paper has for
  InstaNAS-A (`experiments/papers/acs/batches.py`; what else it comes to stands in a table).
* *How long their kernels are.* It is in pictures only. PyTorch's on an H100 last 1 to 4 us; with a speed-up of 1.66 for
  a launch and a synchronisation of at least 5 us each the paper's must be several times as long (table of lengths).

A figure holds within 15 %; where the published occupancy is met, the published figure may also lie between the two
graphs. The paper does not say whether persistent threads were measured or simulated; here they are simulated. The list
of what was scheduled holds 64 launches in hardware; its length is not published, and 4 KB have room for about so many.

*Queued* is no part of the paper: the same window with up to eight launches a stream, where a kernel may follow what it
waits for without a synchronisation (the scheduler `earliest-start`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.verdicts import Simulation as AnyCell
from gpusched_env.experiments.lib.verdicts import as_row, table_of, table_of_numbers
from gpusched_env.experiments.papers.acs.batches import TIMES, TRIED
from gpusched_env.experiments.papers.acs.bracketed import Bracketed, shown
from gpusched_env.experiments.papers.acs.marks import MARKS
from gpusched_env.experiments.papers.acs.runs import (
    AGAIN,
    BEFORE,
    BY_BATCH,
    BY_LENGTH,
    BY_MEMORY,
    CLASS_OF,
    DYNAMIC,
    GRAPH,
    HOST_US,
    HOSTS_US,
    HW,
    LENGTHS,
    OWN,
    PERSISTENT,
    PROGRAMS,
    RL,
    SCHEDULERS,
    SERIAL,
    SIMULATOR_GAP_US,
    SIZES,
    STATIC,
    STREAM_GAP_US,
    SW,
    AcsRun,
    facts,
)  # fmt: skip
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.workload.memory import CHECK_US, check_us

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

MEANS = {(RL, SW): 1.66, (DYNAMIC, SW): 1.05, (DYNAMIC, HW): 1.30, (STATIC, SW): 1.16, (STATIC, HW): 1.31}
"""Mean speed-ups of the programs of a class, in the paper's simulator; its bars exist as pictures only."""
WITHIN = 0.15
INSTANAS = "instanas_infer_b1"
OCCUPANCY = {RL: 0.34, INSTANAS: 0.39}
"""Published, in one stream: Brax on average, and InstaNAS-A."""
PROGRAM_COLUMNS = (
    "program = {program} | class = {kind} | times the batch = {times} | kernels = {kernels} | levels = {levels} | "
    "parallelism = {parallelism:.2f} | own memory = {own_parallelism:.2f} | us a kernel = {duration_us:.1f} | "
    "blocks = {blocks:.0f} | segments = {segments:.1f}"
)
PROGRAM_NOTE = (
    "Medians of durations (on the GPU of the recording) and of blocks, mean of segments; copies are left out."
)
BATCH_NOTE = "The same batch for all networks of a class; *occupancy*: in one stream, 0 to 1."
CHECKED_COLUMNS = (
    "figure = {what} | published = {published} | memory used again = {again:.3g} | of its own = {own:.3g} | "
    "verdict = {verdict}"
)
OCCUPANCY_COLUMNS = "of = {what} | published = {published:.0%} | ours = {ours:.0%}"
LARGEST, LEAST = f"{HW}, largest of {RL}", f"{HW} over {SW}, least of all programs"
EACH_INPUT, MADE_BEFORE = f"CUDA graphs made for each input, most of {RL}", f"{BEFORE} over {HW}, {STATIC}"
THREADS, WIDER = f"persistent threads, mean of {RL}", f"gain of a window of 32 over one of 16, {RL}"
ALL_PROGRAMS = f"{HW}, mean of all"
WIDER_GAIN, WIDER_POINTS = 0.045, 0.02
"""The published gain of the wider window, and by how much ours may differ."""
THREADS_SPEED = 1.0 / 1.35
OVERALL = 1.56
HW_OVER_SW = {kind: MEANS[kind, HW] / MEANS[kind, SW] for kind in (DYNAMIC, STATIC)}
CHECK_COLUMNS = "window = {what[0]} | segments = {what[1]} | published = {published:.0f} ns | charged = {ours:.0f} ns"


def _value(what: str) -> str:
    """The name of a criterion that judges the published value, not its side."""
    return f"{what}, as a value"


def _over(kind: str) -> str:
    return f"{HW} over {SW}, mean of {kind}"


class Paper(Reproduction):
    """Speed-ups over one stream, their means by class, and what they depend on."""

    name = "acs"
    title = "ACS"
    marks = MARKS
    legend = (
        "*Speed-up*: time of the program in one stream over that under the scheduler. *Parallelism*: sum of the "
        "kernels' durations over the longest chain of them, which bounds the gain where kernels take all of the time; "
        "*levels*: kernels of the longest chain. What is gained beyond that is time between kernels of a stream."
    )

    @staticmethod
    def cells() -> Sequence[AnyCell]:
        return (
            [
                AcsRun.as_full(program, scheduler, gap_us)
                for gap_us in (SIMULATOR_GAP_US, STREAM_GAP_US)
                for program in CLASS_OF
                for scheduler in SCHEDULERS
            ]
            + [
                AcsRun.as_full(program, scheduler, SIMULATOR_GAP_US, host_us=host_us)
                for host_us in HOSTS_US
                for program in PROGRAMS[RL]
                for scheduler in (SERIAL, *(f"{HW}, {size}" for size in SIZES))
                if host_us != HOST_US
            ]
            + [
                AcsRun.as_full(program, scheduler, SIMULATOR_GAP_US, length=length)
                for length in LENGTHS
                for program in CLASS_OF
                for scheduler in BY_LENGTH
                if length != 1.0
            ]
            + [
                AcsRun.as_full(program, scheduler, SIMULATOR_GAP_US, memory=OWN)
                for program in CLASS_OF
                for scheduler in BY_MEMORY
            ]
            + [
                AcsRun(program, scheduler, SIMULATOR_GAP_US, times=times)
                for times in TRIED
                for program in TIMES
                for scheduler in BY_BATCH
                if times != TIMES[program]
            ]
        )

    @functools.cached_property
    def _as_full(self) -> DataFrame:
        """The runs of programs that fill the GPU as much as the paper's, as far as they can."""
        runs = self.to_frame(AcsRun)
        return runs[runs.times == runs.program.map(lambda program: TIMES.get(program, 1))]

    @functools.cached_property
    def _runs(self) -> DataFrame:
        runs = self._as_full
        usual = (runs.host_us == HOST_US) & (runs.length == 1.0) & (runs.memory == AGAIN)
        return runs[usual].assign(kind=runs.program.map(CLASS_OF))

    @functools.cached_property
    def _with_both(self) -> DataFrame:
        """Speed-ups by class, memory of results and program; a column a scheduler."""
        runs = self._as_full
        runs = runs[(runs.gap_us == SIMULATOR_GAP_US) & (runs.host_us == HOST_US) & (runs.length == 1.0)]
        runs = runs[runs.scheduler.isin(BY_MEMORY)].assign(kind=runs.program.map(CLASS_OF))
        times = runs.pivot(index=["kind", "memory", "program"], columns="scheduler", values="time_us")
        return times.rdiv(times[SERIAL], axis=0)[list(BY_MEMORY)]

    @property
    def own(self) -> DataFrame:
        """Speed-ups by class and program where each result has memory of its own; a column a scheduler."""
        return self._with_both.xs(OWN, level="memory")

    @property
    def by_memory(self) -> DataFrame:
        """Mean speed-ups by class and memory of results."""
        found = self._with_both.groupby(level=["kind", "memory"]).mean()
        return found.loc[[(kind, memory) for kind in PROGRAMS for memory in (AGAIN, OWN)]]

    @property
    def by_host(self) -> DataFrame:
        """Mean speed-ups of physics steps by the application's time from launch to launch (us) and window."""
        runs = self._as_full
        of_steps = runs.program.isin(PROGRAMS[RL]) & (runs.length == 1.0) & (runs.memory == AGAIN)
        runs = runs[(runs.gap_us == SIMULATOR_GAP_US) & of_steps]
        times = runs.pivot(index=["host_us", "program"], columns="scheduler", values="time_us")
        found = times.rdiv(times[SERIAL], axis=0)[[f"{HW}, {size}" for size in SIZES]]
        return found.groupby(level="host_us").mean()

    @property
    def by_batch(self) -> DataFrame:
        """Mean speed-ups of networks, and occupancies in one stream, by class and batch over the recorded one."""
        runs = self.to_frame(AcsRun)
        usual = (runs.gap_us == SIMULATOR_GAP_US) & (runs.host_us == HOST_US) & (runs.length == 1.0)
        runs = runs[usual & (runs.memory == AGAIN) & runs.program.isin(TIMES) & runs.scheduler.isin(BY_BATCH)]
        runs = runs.assign(kind=runs.program.map(CLASS_OF))
        table = runs.pivot(index=["kind", "times", "program"], columns="scheduler", values=["time_us", "occupancy"])
        found = table["time_us"].rdiv(table["time_us"][SERIAL], axis=0)[list(BY_BATCH[1:])]
        found = found.assign(occupancy=table["occupancy"][SERIAL])
        return found.groupby(level=["kind", "times"]).mean()

    @property
    def by_length(self) -> DataFrame:
        """Mean speed-ups by class and length of kernels."""
        runs = self._as_full
        runs = runs[(runs.gap_us == SIMULATOR_GAP_US) & (runs.host_us == HOST_US) & runs.scheduler.isin(BY_LENGTH)]
        runs = runs[runs.memory == AGAIN]
        runs = runs.assign(kind=runs.program.map(CLASS_OF))
        times = runs.pivot(index=["kind", "length", "program"], columns="scheduler", values="time_us")
        found = times.rdiv(times[SERIAL], axis=0)[list(BY_LENGTH[1:])]
        return found.groupby(level=["kind", "length"]).mean().loc[list(PROGRAMS)]

    @functools.cached_property
    def speedups(self) -> DataFrame:
        """Speed-ups by gap, class and program; a column a scheduler."""
        rows = ["gap_us", "kind", "program"]
        times = self._runs.pivot(index=rows, columns="scheduler", values="time_us")
        in_order = self._runs[rows].drop_duplicates().itertuples(index=False, name=None)
        return times.rdiv(times[SERIAL], axis=0)[list(SCHEDULERS)].loc[list(in_order)]

    @functools.cached_property
    def occupancy(self) -> DataFrame:
        """Occupancies by class, with the simulator's gap; a column a scheduler."""
        runs = self._runs[self._runs.gap_us == SIMULATOR_GAP_US]
        found = runs.pivot_table(index="kind", columns="scheduler", values="occupancy", sort=False)
        return found[list(SCHEDULERS)]

    @property
    def means(self) -> DataFrame:
        """Mean speed-ups by gap and class."""
        return self.speedups.groupby(level=["gap_us", "kind"], sort=False).mean()

    @property
    def met(self) -> bool:
        """Whether physics steps fill the GPU as much as the paper's, in one stream."""
        return bool(self.occupancy.loc[RL, SERIAL] >= OCCUPANCY[RL])

    def checks(self) -> list[Bracketed]:
        again, own = self._figures(self.speedups.loc[SIMULATOR_GAP_US]), self._figures(self.own)
        ranges = {
            **{f"{of}, mean of {kind}": (mean, mean, WITHIN * mean) for (kind, of), mean in MEANS.items()},
            LARGEST: (2.19, 2.19, WITHIN * 2.19),
            LEAST: (1.0, 10.0, 0.0),
            EACH_INPUT: (0.0, 1.0, 0.0),
            "the same, most of dynamic networks": (0.0, 1.0, 0.0),
            MADE_BEFORE: (1.0, 1.0, WITHIN),
            THREADS: (0.0, 1.0, 0.0),
            _value(THREADS): (THREADS_SPEED, THREADS_SPEED, WITHIN * THREADS_SPEED),
            WIDER: (0.0, 0.1, 0.0),
            _value(WIDER): (WIDER_GAIN, WIDER_GAIN, WIDER_POINTS),
            ALL_PROGRAMS: (OVERALL, OVERALL, WITHIN * OVERALL),
            **{_over(kind): (ratio, ratio, WITHIN * ratio) for kind, ratio in HW_OVER_SW.items()},
        }
        return [
            Bracketed(what, low, high, again[what], own[what], slack, bracket=RL in what and self.met)
            for what, (low, high, slack) in ranges.items()
        ]

    @staticmethod
    def _figures(found: DataFrame) -> dict[str, float]:
        """What is judged, of speed-ups by class and program."""
        means = found.groupby(level="kind", sort=False).mean()
        hardware, software, rl = found[f"{HW}, 32"], found[f"{SW}, 32"], found.loc[RL]
        figures = {f"{of}, mean of {kind}": means.loc[kind, f"{of}, 32"] for kind, of in MEANS}
        figures |= {
            LARGEST: hardware.loc[RL].max(),
            LEAST: (hardware / software).min(),
            EACH_INPUT: rl[GRAPH].max(),
            "the same, most of dynamic networks": found.loc[DYNAMIC, GRAPH].max(),
            MADE_BEFORE: (found.loc[STATIC, BEFORE] / hardware.loc[STATIC]).mean(),
            THREADS: rl[PERSISTENT].mean(),
            WIDER: means.loc[RL, f"{HW}, 32"] / means.loc[RL, f"{HW}, 16"] - 1.0,
            ALL_PROGRAMS: hardware.loc[[RL, DYNAMIC, STATIC]].mean(),
            **{_over(kind): means.loc[kind, f"{HW}, 32"] / means.loc[kind, f"{SW}, 32"] for kind in HW_OVER_SW},
        }
        figures |= {_value(of): figures[of] for of in (THREADS, WIDER)}
        return {what: float(figure) for what, figure in figures.items()}

    def occupancies(self) -> list[dict[str, Any]]:
        """Occupancies of programs in one stream, beside the published ones."""
        serial = self._runs[(self._runs.gap_us == SIMULATOR_GAP_US) & (self._runs.scheduler == SERIAL)]
        by_name = {**serial.groupby("kind").occupancy.mean(), **serial.set_index("program").occupancy}
        return [
            {"what": of, "published": share, "ours": float(by_name[of])}
            for of, share in OCCUPANCY.items()
            if of in by_name
        ]

    def summary(self) -> str:
        means = self.means.loc[SIMULATOR_GAP_US]
        by_class = ", ".join(f"{kind} {means.loc[kind, f'{HW}, 32']:.2f}" for kind in (RL, DYNAMIC, STATIC))
        return f"{self.tally()}; mean speed-up of ACS-HW: {by_class}"

    def outcome(self) -> str:
        full = "; ".join(f"{of['what']} {of['ours']:.0%} for {of['published']:.0%}" for of in self.occupancies())
        filled, software = self.occupancy.loc[RL], self.by_memory[f"{SW}, 32"].loc[RL]
        times, by_batch = TIMES[INSTANAS], self.by_batch[f"{HW}, 32"].unstack()
        recorded, alike = (
            ", ".join(f"{kind} {by_batch.loc[kind, at]:.2f}" for kind in (DYNAMIC, STATIC)) for at in (1, times)
        )
        return (
            f"Why: steps of {RL} fill the GPU by {filled[SERIAL]:.0%} in one stream and by {filled[f'{HW}, 16']:.0%} "
            f"with a window of 16 in hardware, so that a larger one finds no room. In software they gain "
            f"{software[AGAIN]:.2f} with memory that is used again and {software[OWN]:.2f} with memory of its own for "
            f"each result; the paper has {MEANS[RL, SW]:.2f}.\n\n"
            f"Occupancy in one stream: {full}. Networks reach it by larger batches than recorded, and what ACS-HW "
            f"gains on them hangs on that ({MEANS[DYNAMIC, HW]} and {MEANS[STATIC, HW]} published): in the recorded "
            f"batch {recorded}; all of them in {times} times that batch, {alike}."
        )

    def data(self) -> dict[str, Any]:
        return {
            "targets": [as_row(target) for target in self.checks()],
            "programs": [facts(program) for program in CLASS_OF],
            "speedups": self.speedups.reset_index().to_dict("records"),
            "means": self.means.reset_index().to_dict("records"),
            "by_length": self.by_length.reset_index().to_dict("records"),
            "by_batch": self.by_batch.reset_index().to_dict("records"),
            "by_host_us": self.by_host.reset_index().to_dict("records"),
            "by_memory": self.by_memory.reset_index().to_dict("records"),
            "published_occupancy": self.occupancies(),
            "occupancy": self.occupancy.reset_index().to_dict("records"),
            "runs": self.to_frame(AcsRun).to_dict("records"),
        }

    def tables(self) -> list[Table]:
        checks = [{"what": key, "published": 1e3 * us, "ours": 1e3 * check_us(*key)} for key, us in CHECK_US.items()]
        return [
            table_of("Published figures and ours", [shown(check) for check in self.checks()], CHECKED_COLUMNS),
            table_of("Occupancy in one stream", self.occupancies(), OCCUPANCY_COLUMNS),
            table_of_numbers("Mean speed-up by the memory of results", ("class", "memory"), self.by_memory),
            *(
                table_of_numbers(f"Mean speed-up by class, {gap_us:g} us between kernels of a stream", ("class",), of)
                for gap_us, of in ((gap_us, self.means.loc[gap_us]) for gap_us in (SIMULATOR_GAP_US, STREAM_GAP_US))
            ),
            table_of_numbers(
                "Networks by the batch over the recorded one",
                ("class", "times the batch"),
                self.by_batch,
                note=BATCH_NOTE,
            ),
            table_of_numbers("Mean speed-up by the length of kernels", ("class", "times as long"), self.by_length),
            table_of_numbers("Deep RL by the host's time for a launch", ("us a launch",), self.by_host),
            table_of_numbers("Occupancy", ("class",), self.occupancy, ".1%"),
            table_of("Programs", [facts(program) for program in CLASS_OF], PROGRAM_COLUMNS, PROGRAM_NOTE),
            table_of("Time of a check", checks, CHECK_COLUMNS),
        ]

    def details(self) -> list[Table]:
        heads = ("class", "program")
        return [
            table_of_numbers(f"Speed-ups, {gap_us:g} us between kernels of a stream", heads, self.speedups.loc[gap_us])
            for gap_us in (SIMULATOR_GAP_US, STREAM_GAP_US)
        ]
