"""Layout of the compiled device's state: records of plain numbers, one dtype a kind of entity.

Static tables describe a problem (:mod:`~gpusched_env.devices.compiled.tables`); the rest is the state of one
environment (:mod:`~gpusched_env.devices.compiled.arena`). Compiled functions get the record ``ENV`` of an
environment, here called ``w`` for world, and reach the others by :mod:`~gpusched_env.devices.compiled.access`.
Ring buffers are indexed by running numbers modulo their length, a power of two.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gpusched_env.hardware.records import BLOCK_DTYPE, GPU_DTYPE

I8, F8 = np.int64, np.float64


def _record(*groups: tuple[type, str], base: np.dtype[Any] | None = None) -> np.dtype[Any]:
    """An aligned dtype of fields named in strings; ``base``: fields that come first."""
    fields: list[tuple[str, Any]] = []
    if base is not None:
        assert base.fields is not None
        fields += [(name, base.fields[name][0]) for name in base.names or ()]
    for type_, names in groups:
        fields += [(name, type_) for name in names.split()]
    return np.dtype(fields, align=True)


# ---- static ------------------------------------------------------------------------------------------

PROBLEM = _record(
    (I8, "tenants channels resident_grids copy_engines sliced preempts partitions launch_depth"),
    (I8, "programs_at kernels_at ops_at variants_at factors_at sm_ids_at"),
    (F8, "launch_latency_us event_latency_us sync_latency_us slice_us switch_us partition_change_us"),
    (F8, "drain_ack_us reset_us nominal_bytes_per_us idle_w sm_w dram_w horizon_us decision_us"),
    base=GPU_DTYPE,
)
"""A GPU, the rules of a scenario, and the addresses of the problem's tables. ``sliced``, ``preempts``,
``partitions``: 0 or 1; ``dram_bytes_per_us`` is the reachable bandwidth, ``nominal_bytes_per_us`` the data
sheet's."""

KERNEL = _record(
    (I8, "grid_blocks block_threads blocks_per_sm uses_sms idempotent state_bytes"),
    (F8, "log_idle profiled_us issue dram gap_us"),
    base=BLOCK_DTYPE,
)
"""A kernel: what one block needs, and its profile. ``state_bytes``: registers and shared memory of a block."""

OP = _record((I8, "kind identity bytes"), (F8, "host_us scale device_us left_us"))
"""A host operation. ``identity``: row of the kernel table, -1: none."""

VARIANT = _record((I8, "first_op ops device_ops"))

PROGRAM = _record(
    (I8, "priority arrivals jobs first_variant variants first_factor factors"),
    (F8, "weight slo_us alone_us gap_us event_gap_us start_us think_us rate_per_s period_us burst_go"),
)
"""A tenant. ``arrivals``: a code below; ``jobs``: -1 without a limit; ``slo_us``: ``inf`` without one;
``event_gap_us``: what takes the gap's place where the stream priority changes."""

NUMBER = _record((I8, "value"))
REAL = _record((F8, "value"))

CLOSED_LOOP: Final = 0
POISSON: Final = 1
PERIODIC: Final = 2
BURSTS: Final = 3
BACKLOG: Final = 4

# ---- an environment's state --------------------------------------------------------------------------

ENV = _record(
    (I8, "address settle_at end_at dispatch_at problem_at clients_at randoms_at jobs_at launches_at due_at chain_at"),
    (I8, "engine_queue_at contexts_at sets_at log_at tenants job_mask launch_mask chain_ring words log_room"),
    (I8, "command command_tenant command_choice command_first command_sms"),
    (I8, "over done awake begun ids launch_count to_complete commands illegal"),
    (I8, "chain_first chain_length stalled stall log_rows detail"),
    (I8, "slicer_context slicer_asleep slicer_switching slicer_lonely"),
    (I8, "engine_busy_0 engine_busy_1 engine_queue_0 engine_queue_1 busy_sms"),
    (F8, "command_until_us now_us done_us timer_us busy_until_us slice_end_us gpu_since_us traffic power_w"),
    (F8, "busy_sm_us dram_bytes energy_j"),
)
"""What there is one of, and where the rest is.

* ``*_at``: addresses, the first ones of compiled functions; then for how many tenants there is room, lengths of
  rings (the masks are one less), words of a set of SMs, rows of the log beyond what one event may write.
* ``command``: code of the one to carry out; the tenant whose kernel or partition it is about; ``choice``: stream
  priority of a launch or mode of a preemption; ``first``, ``sms``: partition of a launch (0 SMs: the tenant's),
  of a preemption (0 SMs: the whole kernel) or of the tenant; ``until_us``: end of a wait.
* ``awake``: something happened that a scheduler could react to; ``begun``: a kernel has been launched;
  ``launch_count`` numbers launches in their order.
* ``stalled``: tenant whose process waits for larger buffers (-1: none), and ``stall``: which.
* ``slicer_*``: the context that has the GPU, and what the slicer waits for; ``engine_*``: copy engines and the
  lengths of their queues; ``traffic``, ``power_w``, ``busy_sms``: the meter's rates.
"""

CLIENT = _record(
    (I8, "arrived taken completed awaiting host_state host_op host_end host_job host_asleep"),
    (I8, "issued handed finished kernels_pending kernels_launched overdue slo_misses"),
    (I8, "stream_state stream_priority ended_kernel ended_priority"),
    (I8, "on_device placed preempting preemptions returned mode blocks saved behind"),
    (I8, "partition_first partition_sms save_first save_sms"),
    (F8, "arrives_us host_factor last_end_us last_turnaround_us mean_turnaround_us launched_profiled_us"),
    (F8, "stream_ended_us started_us saved_left dead_us restore_us copy_started_us jobs_us jobs_since_us"),
    (F8, "partitioned_us preempted_us"),
)
"""A tenant at run time.

Jobs are numbered in order of arrival: ``completed`` have left, ``taken`` were taken up by the host, ``arrived``
have arrived; ``overdue`` of those in the system are past their deadline. Operations are numbered in order of
issue: ``finished`` is the oldest unfinished one, ``handed`` the first that waits for the scheduler, ``issued``
the next. Only the oldest can be on the device; what concerns it alone stands here: ``placed`` (among the
resident grids), ``returned`` (1: preempted, pending again), ``mode`` of its preemption and
``dead_us``, how long that takes, ``save_first``, ``save_sms``: where its blocks are saved (0 SMs: all of them),
``blocks`` to run when it is next put on the device. ``behind``: the next tenant in its hardware queue (-1: none).
``partition_sms``: all of the GPU's without a partition. ``partitioned_us``, ``preempted_us``: when the partition was
last set, a whole kernel last told to make way (``-inf``: never)."""

JOB = _record((I8, "first_op ops unfinished"), (F8, "arrived_us started_us deadline_us factor"))
"""A job in the system, by number."""

LAUNCH = _record(
    (I8, "id order op job priority partition_first partition_sms"), (F8, "issued_us launched_us arrives_us")
)
"""An issued, unfinished operation, by number. ``order``: number of its launch."""

RANDOM = _record((np.uint64, "high low increment_high increment_low"))
"""A generator, see :mod:`~gpusched_env.devices.compiled.randomness`."""

EVENT = _record((I8, "code tenant"))
"""What happens next at the present time."""

CHANNEL = _record((I8, "first last"))
"""First and last tenant in a hardware queue; -1: empty."""

WORD = _record((np.uint64, "bits"))
"""Part of a set of SMs."""

LOG = _record((F8, "table c1 c2 c3 c4 c5 c6 c7 c8 c9 c10"))
"""A row of a table of the timeline."""

CONTEXT = _record(
    (I8, "channels_at heads_at queue_at grids_at classes_at kinds_at members_at rows_at number words depth"),
    (I8, "active classes queued waiting grids serial busy_sms resident_threads ahead changed turn"),
    (I8, "started dispatched ended jumping"),
    (F8, "now_us next_us traffic"),
)
"""The SMs as tenants that share them see them. ``depth``: most rows of a class; ``classes``: in use; ``queued``:
grids with waiting blocks; ``waiting``: heads of hardware queues without a slot; ``ahead``: waves that have not
begun are accounted for; ``turn``: counts changes of the queue; ``dispatched``, ``ended``: grids with that mark
after a step."""

SM_CLASS = _record(
    (I8, "sms rows threads warps blocks registers shared carveout dirty ended room eligible"),
    (F8, "demand loading throttle"),
)
"""Equal SMs: their number, rows of residents, resources in use; ``room`` and ``eligible`` are the dispatcher's."""

KIND = _record((I8, "sms"), (F8, "demand loading"))
"""SMs of equal DRAM demand and weight, in the sharing of the bandwidth."""

ROW = _record((I8, "grid blocks stopped"), (F8, "left rate time_us since_us"))
"""Equal blocks of one grid on an SM that started together. ``left``: share of their work, whole numbers on top
are waves to follow on the same slots; ``time_us``: duration of a block before memory throttling; ``stopped``: 1 if
they make no progress, for a preemption."""

GRID = _record(
    (I8, "launch threads warps registers shared_bytes carveout fit waiting resident saved priority first sms"),
    (I8, "queued begun started serial dispatched ended waiting_was resident_was saved_was"),
    (F8, "latency_us rho log_idle wait dram_bytes spread saved_left"),
)
"""A resident grid, by tenant: a stream executes one kernel at a time. ``first``, ``sms``: its partition;
``fit``: most blocks on an SM; ``queued``: a state below; ``*_was``: scratch of
:mod:`~gpusched_env.devices.compiled.ends`."""


# Phases of events at equal times, see devices.reference.phases; in the order of timers.
COMPLETION: Final = 0
PREEMPTION: Final = 1
SLICER: Final = 2
ENGINE: Final = 3
STREAM: Final = 4
ARRIVAL: Final = 5
HOST: Final = 6
DEADLINE: Final = 7
PREEMPTION_BEGINS: Final = 8
PHASES: Final = 9

# Codes of chained events.
SLICER_BEGINS: Final = 0
SLICER_WAKES: Final = 7
STREAM_WAKES: Final = 1
STREAM_GOES_ON: Final = 2
HOST_WAKES: Final = 3
ARRIVALS_BEGIN: Final = 4
ARRIVALS_GO_ON: Final = 5
COPY_STARTS: Final = 6

# States of a stream.
ASLEEP: Final = 0
"""Nothing is in it."""
AWAKE: Final = 1
"""It goes on at the present time."""
READYING: Final = 2
"""The timer runs to the start of its oldest operation."""
EXECUTING: Final = 3
"""The timer runs where saved blocks of its kernel, which stays launched, are read back."""
RESUMING: Final = 4
"""The timer runs to the return of a preempted kernel."""

# States of a grid.
NOT_QUEUED: Final = 0
"""All blocks are handed out, or no further ones are to be."""
IN_QUEUE: Final = 1
RETURNS: Final = 2
"""Not in the queue, but it will be again: saved blocks are being read back."""

# Sets of SMs used as scratch.
PICK: Final = 0
PARTITION: Final = 1
TODO: Final = 2
RUN: Final = 3
PLUS: Final = 4
SINGLE: Final = 5
SETS: Final = 6

# Tables of the timeline in the log, and details that it keeps.
LOG_JOB: Final = 0
LOG_KERNEL: Final = 1
LOG_SMS: Final = 2
LOG_DECISION: Final = 3
LOG_COPY: Final = 4
LOG_BLOCKS: Final = 5

JOBS_ONLY: Final = 0
KERNELS: Final = 1
BLOCKS: Final = 2

# Why the event loop returned.
OVER: Final = 0
"""The episode has ended."""
DECIDE: Final = 1
"""A scheduler is asked."""
DEADLOCK: Final = 2
GROW_JOBS: Final = 3
"""The ring of jobs is full."""
GROW_LAUNCHES: Final = 4
FLUSH: Final = 5
"""The log is full."""

NO_TENANT: Final = -1
