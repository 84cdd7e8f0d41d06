"""The columns of an observation: one enum a table, each member with its meaning, unit, range and source.

The same members index the encoder's outputs (Numba reads them as constants), bound the observation
space and print the data sheets, so none of the three can drift from the others.
"""

from __future__ import annotations

import enum

from gpusched_env.scheduling.commands import POLICIES


class Feature(enum.IntEnum):
    """A column: its number, and what stands in it."""

    meaning: str
    unit: str
    low: float
    high: float
    source: str

    def __new__(cls, meaning: str, unit: str, low: float, high: float, source: str) -> Feature:
        member = int.__new__(cls, len(cls.__members__))
        member._value_ = len(cls.__members__)
        member.meaning = member.__doc__ = meaning
        member.unit = unit
        member.low = low
        member.high = high
        member.source = source
        return member


LOG_US = "log us"
"""Unit of durations: ``log1p(microseconds) / log1p(10^6)``, 1 from a second on."""
_CODES = ", ".join(f"{code}/{len(POLICIES) - 1} {name}" for code, name in enumerate(POLICIES) if code > 0)
FLAG = "0 or 1"
SHARE = "share"
RATIO = "x / (1 + x)"
"""Unit of ratios without an upper limit: 0 for 0, 1/2 for 1, towards 1."""
SIGNED_RATIO = "x / (1 + |x|)"
"""Unit of ratios of either sign, without a limit: 0 for 0, towards -1 and 1."""
OF_SLO = "of the SLO"


class PendingFeature(Feature):
    """Table ``pending``: launches that wait for the scheduler, kernels and graphs.

    Row ``tenant * lookahead + k`` has the ``k``-th oldest one of a tenant, with the scenario's look-ahead: with 1, a
    row is a tenant's oldest.
    """

    PRESENT = ("1 if a launch stands in this row; otherwise the row is 0", FLAG, 0, 1, "pending.id")
    LAUNCHABLE = ("1 if it can be launched now", FLAG, 0, 1, "pending.launchable")
    URGENCY = ("1 / (1 + the tenant's priority): 1 for the most urgent", "-", 0, 1, "pending.priority")
    PROFILED = ("profiled duration alone; 0 if never measured", LOG_US, 0, 1, "pending.profiled_us")
    GAP = ("profiled idle time of the device after it; 0 if never measured", LOG_US, 0, 1, "pending.profiled_gap_us")
    WAVES = ("blocks still to run over the blocks that the empty GPU holds", RATIO, 0, 1, "pending.blocks")
    SMS = ("SMs it would use on the empty GPU, of all", SHARE, 0, 1, "pending.sms")
    BLOCK_SHARE = ("share of an SM that one block takes", SHARE, 0, 1, "pending.blocks_per_sm")
    THREADS = ("threads a block, of 1024", SHARE, 0, 1, "pending.threads")
    ISSUE = ("profiled share of issue slots", SHARE, 0, 1, "pending.profiled_issue")
    DRAM = ("profiled share of DRAM bandwidth", SHARE, 0, 1, "pending.profiled_dram")
    WAITED = ("how long it has been pending", LOG_US, 0, 1, "pending.waited_us")
    JOB_AGE = ("time since its job arrived", LOG_US, 0, 1, "pending.job_arrived_us")
    JOB_SLOWDOWN = (
        "(job's age + profiled device time left) over the tenant's turnaround alone",
        RATIO,
        0,
        1,
        "pending.job_arrived_us, pending.job_left_us, tenants.alone_us",
    )
    JOB_LEFT = ("profiled device time left of its job, this kernel included", LOG_US, 0, 1, "pending.job_left_us")
    SLACK = (
        "(deadline - now - profiled device time left); 1 without an SLO",
        OF_SLO,
        -1,
        1,
        "pending.deadline_us, pending.job_left_us, tenants.slo_us",
    )
    PREEMPTED = ("1 if it ran before and was preempted", FLAG, 0, 1, "pending.preempted")
    MORE_URGENT_LAUNCHED = (
        "1 if a kernel of a more urgent tenant is launched and unfinished",
        FLAG,
        0,
        1,
        "tenants.priority, tenants.kernels_launched",
    )
    MORE_URGENT_ACTIVE = (
        "1 if a more urgent tenant has a job in the system",
        FLAG,
        0,
        1,
        "tenants.priority, tenants.jobs_waiting",
    )
    TENANT = ("(row of its tenant + 1) / tenant rows", SHARE, 0, 1, "pending.tenant")
    UPSTREAM = ("unfinished operations that it is known to wait for, over 4", RATIO, 0, 1, "pending.upstream")
    GRAPH = ("1 if it is a graph, which runs as a unit and cannot be preempted", FLAG, 0, 1, "pending.nodes")
    CHILD = ("1 if a running kernel launched it from the device", FLAG, 0, 1, "pending.parent")
    QUEUED = (
        "in a window: profiled time left of what it would be behind in its stream, if launched now",
        LOG_US,
        0,
        1,
        "pending.queued_us",
    )
    BETWEEN = (
        "in a window: of that, what is behind the last one that it waits for",
        LOG_US,
        0,
        1,
        "pending.between_us",
    )
    DEPENDENTS = ("in a window: pending launches known to wait for it, over 4", RATIO, 0, 1, "pending.dependents")
    ROWS = ("rows of tiles of its grid, over 8", RATIO, 0, 1, "pending.rows")
    COLUMNS = ("columns of tiles of its grid, over 8", RATIO, 0, 1, "pending.columns")
    SLICES = ("slices that share the work of a tile, over 4", RATIO, 0, 1, "pending.slices")
    FOLD = (
        "matrices that its producer has side by side, over 1; 0: it needs no tiles",
        RATIO,
        0,
        1,
        "pending.fold",
    )
    SYNCHRONISABLE = (
        "1 if its tiles can be synchronised with its producer's now",
        FLAG,
        0,
        1,
        "pending.synchronisable",
    )
    POLICY = (
        f"policy by which its blocks wait for tiles: {_CODES}; 0: stream order",
        SHARE,
        0,
        1,
        "pending.policy",
    )
    POSTS = ("policy by which a consumer's blocks wait for its tiles, likewise", SHARE, 0, 1, "pending.posts")
    PRODUCER = ("1 if the launch whose tiles it needs is pending too", FLAG, 0, 1, "pending.producer")
    PRODUCER_PROFILED = (
        "profiled duration of that one; 0 if never measured",
        LOG_US,
        0,
        1,
        "pending.producer, pending.profiled_us",
    )
    WAITS = (
        "how often a block waits for tiles of that one, if it does so tile by tile, over 8",
        RATIO,
        0,
        1,
        "pending.columns, pending.slices, pending.needs",
    )
    LATE = (
        "1 if that one waits for something itself, so that it will not start as soon as it is launched",
        FLAG,
        0,
        1,
        "pending.producer, pending.upstream",
    )
    GAIN_ROW = (
        "share of the time of both that a list schedule of their blocks saves over stream order, with free "
        "synchronisation by row (of a share of the tiles: by share); 0 unless it can be synchronised now",
        SHARE,
        -1,
        1,
        "pending.profiled_us, pending.rows, pending.columns, pending.slices, pending.blocks_per_sm",
    )
    GAIN_TILE = ("the same by tile", SHARE, -1, 1, "likewise")
    GAIN_STRIDED = ("the same, strided by the steps through a row", SHARE, -1, 1, "likewise")
    GAIN_MATRIX = ("the same by matrix of the producer: by row, where that has one", SHARE, -1, 1, "likewise")
    GAIN_ROW_GROUPED = ("by row, in order grouped", SHARE, -1, 1, "likewise")
    GAIN_TILE_GROUPED = ("by tile, in order grouped", SHARE, -1, 1, "likewise")
    GAIN_STRIDED_GROUPED = ("strided, in order grouped", SHARE, -1, 1, "likewise")
    GAIN_MATRIX_GROUPED = ("by matrix, in order grouped", SHARE, -1, 1, "likewise")
    GAIN_ROW_COLUMNS = ("by row, in order column-major", SHARE, -1, 1, "likewise")
    GAIN_TILE_COLUMNS = ("by tile, in order column-major", SHARE, -1, 1, "likewise")
    GAIN_STRIDED_COLUMNS = ("strided, in order column-major", SHARE, -1, 1, "likewise")
    GAIN_MATRIX_COLUMNS = ("by matrix, in order column-major", SHARE, -1, 1, "likewise")
    FORM1_PROFILED = (
        "profiled duration alone in the first form that may be given; 0 if there is none, or never measured",
        LOG_US,
        0,
        1,
        "pending.form1_us",
    )
    FORM1_WAVES = ("blocks of that over those that the empty GPU holds", RATIO, 0, 1, "pending.form1_per_sm")
    FORM1_BLOCK_SHARE = ("share of an SM that one block of that takes", SHARE, 0, 1, "pending.form1_per_sm")
    FORM1_ROWS = ("rows of tiles of that, over 8", RATIO, 0, 1, "pending.form1_rows")
    FORM1_COLUMNS = ("columns of tiles of that, over 8", RATIO, 0, 1, "pending.form1_columns")
    FORM1_SLICES = ("slices of a tile of that, over 4", RATIO, 0, 1, "pending.form1_slices")
    FORM1_GAIN = (
        "share of the time with producer and consumer that a list schedule by row saves in that form, while the other "
        "kernel has that of its forms which is then the best",
        SHARE,
        -1,
        1,
        "pending.form1_us, pending.producer",
    )
    FORM2_PROFILED = (
        "profiled duration alone in the second form that may be given; 0 if there is none, or never measured",
        LOG_US,
        0,
        1,
        "pending.form2_us",
    )
    FORM2_WAVES = ("blocks of that over those that the empty GPU holds", RATIO, 0, 1, "pending.form2_per_sm")
    FORM2_BLOCK_SHARE = ("share of an SM that one block of that takes", SHARE, 0, 1, "pending.form2_per_sm")
    FORM2_ROWS = ("rows of tiles of that, over 8", RATIO, 0, 1, "pending.form2_rows")
    FORM2_COLUMNS = ("columns of tiles of that, over 8", RATIO, 0, 1, "pending.form2_columns")
    FORM2_SLICES = ("slices of a tile of that, over 4", RATIO, 0, 1, "pending.form2_slices")
    FORM2_GAIN = (
        "share of the time with producer and consumer that a list schedule by row saves in that form, while the other "
        "kernel has that of its forms which is then the best",
        SHARE,
        -1,
        1,
        "pending.form2_us, pending.producer",
    )
    FORM3_PROFILED = (
        "profiled duration alone in the third form that may be given; 0 if there is none, or never measured",
        LOG_US,
        0,
        1,
        "pending.form3_us",
    )
    FORM3_WAVES = ("blocks of that over those that the empty GPU holds", RATIO, 0, 1, "pending.form3_per_sm")
    FORM3_BLOCK_SHARE = ("share of an SM that one block of that takes", SHARE, 0, 1, "pending.form3_per_sm")
    FORM3_ROWS = ("rows of tiles of that, over 8", RATIO, 0, 1, "pending.form3_rows")
    FORM3_COLUMNS = ("columns of tiles of that, over 8", RATIO, 0, 1, "pending.form3_columns")
    FORM3_SLICES = ("slices of a tile of that, over 4", RATIO, 0, 1, "pending.form3_slices")
    FORM3_GAIN = (
        "share of the time with producer and consumer that a list schedule by row saves in that form, while the other "
        "kernel has that of its forms which is then the best",
        SHARE,
        -1,
        1,
        "pending.form3_us, pending.producer",
    )


class RunningFeature(Feature):
    """Table ``running``: launched, unfinished kernels and graphs.

    Those that have started come first, then the oldest one of every other tenant, then the rest;
    oldest launch first within each group. What exceeds the rows is not shown (``device.HIDDEN``).
    """

    PRESENT = ("1 if a kernel stands in this row; otherwise the row is 0", FLAG, 0, 1, "running.id")
    TENANT = ("(row of its tenant + 1) / tenant rows", SHARE, 0, 1, "running.tenant")
    URGENCY = ("1 / (1 + the tenant's priority)", "-", 0, 1, "running.priority")
    STREAM_URGENCY = ("minus the stream priority it was launched with", RATIO, 0, 1, "running.stream_priority")
    STARTED = ("1 once one of its blocks was dispatched", FLAG, 0, 1, "running.started")
    PREEMPTING = ("1 while a preemption of it is under way", FLAG, 0, 1, "running.preempting")
    IDEMPOTENT = ("1 if it may be reset", FLAG, 0, 1, "running.idempotent")
    PROFILED = ("profiled duration alone; 0 if never measured", LOG_US, 0, 1, "running.profiled_us")
    ELAPSED = ("time since its first block started", LOG_US, 0, 1, "running.elapsed_us")
    LEFT = ("predicted time left: profiled duration - elapsed, at least 0", LOG_US, 0, 1, "running.profiled_us")
    OVERDUE = (
        "elapsed over profiled duration; above 1/2 it runs longer than alone; 0 if never measured",
        RATIO,
        0,
        1,
        "running.elapsed_us",
    )
    WAITING = ("blocks not yet dispatched, of its grid", SHARE, 0, 1, "running.blocks_waiting")
    RESIDENT = ("blocks on SMs now, of its grid", SHARE, 0, 1, "running.blocks_resident")
    ISSUE = ("profiled share of issue slots", SHARE, 0, 1, "running.profiled_issue")
    DRAM = ("profiled share of DRAM bandwidth", SHARE, 0, 1, "running.profiled_dram")
    SLACK = (
        "(deadline of its job - now); 1 without an SLO",
        OF_SLO,
        -1,
        1,
        "running.deadline_us, tenants.slo_us",
    )
    POLICY = ("policy by which its blocks wait for tiles, as of `pending`", SHARE, 0, 1, "running.policy")
    POSTS = ("policy by which a consumer's blocks wait for its tiles", SHARE, 0, 1, "running.posts")


class TenantFeature(Feature):
    """Table ``tenants``: row = tenant.

    From ``EARNS`` on, columns are 0 where every launch is a decision (``gpusched_env.planning.plans``).
    """

    PRESENT = ("1 if the scenario has this tenant; otherwise the row is 0", FLAG, 0, 1, "tenants.priority")
    URGENCY = ("1 / (1 + priority)", "-", 0, 1, "tenants.priority")
    WEIGHT = ("weight of its jobs in the cost", RATIO, 0, 1, "tenants.weight")
    HAS_SLO = ("1 if it has an SLO", FLAG, 0, 1, "tenants.slo_us")
    SLO = ("its SLO; 0 without one", LOG_US, 0, 1, "tenants.slo_us")
    ALONE = ("profiled turnaround of one job alone", LOG_US, 0, 1, "tenants.alone_us")
    JOBS = ("jobs in the system, over 4", RATIO, 0, 1, "tenants.jobs_waiting")
    PENDING = ("kernels that wait for the scheduler, over 4", RATIO, 0, 1, "tenants.kernels_pending")
    LAUNCHED = ("launched, unfinished kernels, over 4", RATIO, 0, 1, "tenants.kernels_launched")
    LAUNCHED_LEFT = ("predicted time left of its launched kernels, summed", LOG_US, 0, 1, "tenants.launched_left_us")
    STARTED = ("1 if a launched kernel of it has started", FLAG, 0, 1, "tenants.running_left_us")
    HOST_BUSY = (
        "1 if it has a job but no pending or launched kernel: its host is about to issue one or to finish",
        FLAG,
        0,
        1,
        "tenants.jobs_waiting, tenants.kernels_pending, tenants.kernels_launched",
    )
    OLDEST_AGE = ("age of its oldest unfinished job; 0 without one", LOG_US, 0, 1, "tenants.oldest_arrived_us")
    OLDEST_SLOWDOWN = ("that age over its turnaround alone", RATIO, 0, 1, "tenants.oldest_arrived_us")
    OLDEST_SLACK = (
        "(SLO - that age); 1 without an SLO or a job",
        OF_SLO,
        -1,
        1,
        "tenants.oldest_arrived_us, tenants.slo_us",
    )
    LAST_SLOWDOWN = (
        "last job's turnaround over alone; 0 before the first",
        RATIO,
        0,
        1,
        "tenants.last_turnaround_us",
    )
    MEAN_SLOWDOWN = ("exponential mean of turnarounds over alone", RATIO, 0, 1, "tenants.mean_turnaround_us")
    PARTITION_FIRST = ("first SM of its partition, of all SMs", SHARE, 0, 1, "tenants.partition_first")
    PARTITION_SMS = ("SMs of its partition, of all SMs", SHARE, 0, 1, "tenants.partition_sms")
    REJECTABLE = ("1 if a job of it could be rejected now", FLAG, 0, 1, "tenants.newest_rejectable")
    EARNS = (
        "its weight over its time alone, over the mean of tenants with an SLO",
        RATIO,
        0,
        1,
        "tenants.weight, tenants.alone_us",
    )
    OLDEST_LEFT = (
        "profiled device time left of its oldest job, launched kernels included",
        LOG_US,
        0,
        1,
        "tenants.launched_left_us, pending.job_left_us",
    )
    OLDEST_LAXITY = (
        "(deadline of its oldest job - now - that time); 0 without an SLO or a job",
        OF_SLO,
        -1,
        1,
        "jobs.deadline_us",
    )
    OLDEST_SPARE = (
        "the same, less the time left of kept jobs with earlier deadlines",
        OF_SLO,
        -1,
        1,
        "jobs.deadline_us",
    )
    OLDEST_KEPT = (
        "1 if its oldest job is among those that can all be in time and are worth most, one after the other",
        FLAG,
        0,
        1,
        "jobs.deadline_us, tenants.weight",
    )
    OLDEST_KEPT_DEAR = (
        "the same if a microsecond costs what it is worth",
        FLAG,
        0,
        1,
        "jobs.deadline_us, tenants.weight",
    )
    LOST = ("weight of all its jobs that are not kept, over 4", RATIO, 0, 1, "jobs, tenants.weight")
    KEPT_LEFT = ("profiled device time left of all its jobs that are kept", LOG_US, 0, 1, "jobs")
    AHEAD = (
        "mean weights lost more in sampled futures if it goes first than if the plan says who; 1: cannot be in time",
        SIGNED_RATIO,
        -1,
        1,
        "jobs, tenants.jobs_a_us",
    )
    AHEAD_ALONE = (
        "the same if no other job is served until its oldest is done",
        SIGNED_RATIO,
        -1,
        1,
        "jobs, tenants.jobs_a_us",
    )


class DeviceFeature(Feature):
    """Columns of the vector ``device``."""

    TIME = ("simulated time, of the horizon", SHARE, 0, 1, "time_us, horizon_us")
    SMS = ("log2(SMs of the GPU) / 8", "-", 0, 1, "sms")
    BUSY_SMS = ("SMs with a resident block, of all", SHARE, 0, 1, "busy_sms")
    OCCUPANCY = ("resident threads, of the GPU's maximum", SHARE, 0, 1, "occupancy")
    DRAM = ("DRAM traffic, of the nominal bandwidth", SHARE, 0, 1, "dram")
    LAUNCHABLE = (
        "shown launches that can be launched now, of the pending rows",
        SHARE,
        0,
        1,
        "pending.launchable",
    )
    LAUNCHED = ("launched, unfinished kernels, over 4", RATIO, 0, 1, "tenants.kernels_launched")
    HIDDEN = ("launched kernels beyond the rows of `running`, over 4", RATIO, 0, 1, "tenants.kernels_launched")
    SOONEST_LEFT = (
        "least predicted time left of the started kernels; 0 without one",
        LOG_US,
        0,
        1,
        "tenants.running_left_us",
    )
    LONGEST_LEFT = (
        "greatest predicted time left of the started kernels; 0 without one",
        LOG_US,
        0,
        1,
        "tenants.running_left_us",
    )


class Scalar(enum.IntEnum):
    """Entries of the vector of a View's scalars that the encoder reads (float64)."""

    TIME_US = 0
    HORIZON_US = enum.auto()
    SMS = enum.auto()
    BUSY_SMS = enum.auto()
    OCCUPANCY = enum.auto()
    DRAM = enum.auto()


TABLES: dict[str, type[Feature]] = {
    "pending": PendingFeature,
    "running": RunningFeature,
    "tenants": TenantFeature,
    "device": DeviceFeature,
}
"""The entries of an observation and their columns."""
