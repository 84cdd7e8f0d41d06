"""Layout of the compiled device's state: records of plain numbers, one dtype a kind of entity.

Static tables describe a problem (:mod:`~gpusched_env.devices.compiled.tables`); the rest is the state of one
environment (:mod:`~gpusched_env.devices.compiled.arena`). Compiled functions get the record ``ENV`` of an
environment, here called ``w`` for world, and reach the others by :mod:`~gpusched_env.devices.compiled.access`.
Entities that come and go (launches, edges, grids) have slots, and lists of them are linked by slot numbers. Times are
whole picoseconds, names say so (``_ps``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gpusched_env.hardware.occupancy import BLOCK_DTYPE, GPU_DTYPE

I8, I4, I2, I1, F8 = np.int64, np.int32, np.int16, np.int8, np.float64


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
    (I8, "tenants host_threads streams priorities channels resident_grids copy_engines sliced lookahead launch_depth"),
    (I8, "offered tiled margin edge_margin"),
    (I8, "kernels programs_at kernels_at ops_at copies_at variants_at thread_ops_at factors_at afters_at sm_ids_at"),
    (I8, "stream_rows_at forms_at lengths_at recorded_at"),
    (I8, "launch_latency_ps event_latency_ps sync_latency_ps slice_ps switch_ps partition_change_ps drain_ack_ps"),
    (I8, "graph_gap_beside_ps reset_ps child_launch_ps horizon_ps decision_ps window_sync_ps window_depth own_streams"),
    (I8, "arrivals_until_ps wait_kernel_ps queue_period_ps held_queues throttle_ps restart_ps"),
    (F8, "post_us wait_us order_us"),
    (F8, "nominal_bytes_per_us idle_w sm_w dram_w peak_w horizon_us"),
    (F8, "host_contention waiting_contention"),
    (I8, "cores core_period_ps spins budgets"),
    (F8, "rho kappa saturation l2_bytes"),
    base=GPU_DTYPE,
)
"""A GPU, the rules of a scenario, and the addresses of the problem's tables. ``sliced``: 0 or 1; ``offered``: commands,
a bit for each code; ``tiled``: whether kernels need tiles of others; ``kernels``: in the kernel table, before the
graphs; ``margin``, ``edge_margin``: most launches and edges that one event makes; ``window_sync_ps``: from the end of a
kernel of a window until it is known; ``channels``: hardware queues of a context, ``held_queues`` of them at a time, for
``queue_period_ps`` (0: all of them); ``window_depth``: launches that a stream of a window holds; ``own_streams``: the
scheduler's, the last ones; ``dram_bytes_per_us`` is the reachable bandwidth, ``nominal_bytes_per_us`` the data sheet's;
``peak_w``: power at full load; ``cores``: of the CPU (0: none), ``budgets``: whether theirs may be set; ``l2_bytes``:
of the data sheet, 0 where no kernel's time depends on it."""

KERNEL = _record(
    (I8, "grid_blocks columns rows slices block_threads blocks_per_sm uses_sms idempotent state_bytes nodes"),
    (I8, "forms first_form"),
    (F8, "log_idle profiled_us issue dram gap_us brought_bytes"),
    base=BLOCK_DTYPE,
)
"""A kernel: what one block needs, and its profile; graphs follow the kernels. ``state_bytes``: registers and shared
memory of a block; ``nodes``: kernels in it; ``columns``, ``rows``, ``slices``: its grid, as tiles; ``forms``: how
many kernels do the same work, and where their rows begin in a table of them; ``brought_bytes``: into the L2."""

OP = _record(
    (I8, "gap_ps"),
    (F8, "host_us scale left_us lead cold"),
    (I4, "identity mark tiles first_after more offspring fold steps"),
    (I2, "stream afters branch"),
    (I1, "kind needs"),
)
"""An operation: a host's, or a graph's node or a kernel's child, which lie behind those in the same table.
``identity``: row of the kernel table, -1: none; ``stream``: row of the problem's streams; ``after``: marks that it
waits for (of nodes: numbers of nodes); ``more``, ``offspring``: where a graph's nodes or a kernel's children begin, and
how many there are; ``more`` of a copy: its row of the copies; ``branch``: of a node; ``gap_ps``: from the end of what
it waits for in its queue; ``tiles``: mark of the kernel whose tiles it needs (-1: none); ``needs``, ``fold``,
``steps``, ``lead``: what of them (:mod:`gpusched_env.hardware.tiles`); ``cold``: share by which it takes longer where
the L2 has lost its data."""

COPY = _record((I8, "bytes device_ps"))
"""A copy: its size, and how long it takes."""

VARIANT = _record((I8, "first_op device_ops marks first_thread_ops batch tokens"))
"""A recorded iteration, or a step of a serving engine: ``batch`` requests (0: a prefill) of so many ``tokens``."""

PROGRAM = _record(
    (I8, "priority arrivals jobs first_variant variants first_factor factors first_thread threads first_mark keeps"),
    (I8, "max_batch cache_tokens longest_prefill longest_request first_prompts prompts first_answers answers"),
    (I8, "recorded_prompts recorded_answers first_recorded times span_ps drawn repeats"),
    (
        F8,
        "weight slo_us alone_us answer_us device_us jobs_a_us "
        "start_us think_us rate_per_s period_us burst_go busy_rate_per_s calm_us busy_us footprint_bytes brings",
    ),
)
"""A tenant. ``arrivals``: a code of :mod:`gpusched_env.workload.host`; ``jobs``: -1 without a limit; ``slo_us``:
``inf`` without one; then where its threads and marks begin among those of all tenants; ``max_batch``: of a serving
engine, 0 if it is none; ``first_prompts``, ``first_answers``: where the lengths that it draws from begin in a table, or
takes one after another (``recorded_*``: 1); ``first_recorded``: where the ``times`` of its trace begin in a table;
``keeps``, ``brings``: as of :class:`~gpusched_env.scenarios.tenant_program.TenantProgram`."""

STREAM_ROW = _record((I8, "tenant priority in_line windowed mask_first mask_sms"))
"""A stream of the problem. ``in_line``: 1 if what is issued into it is held up by nothing but what is before it in the
stream, and nothing else waits for it: no marks, no tiles, no forms; ``windowed``: 1 if that passes a window;
``mask_*``: SMs of what is launched into it (0 of them: its tenant's)."""

NUMBER = _record((I8, "value"))
REAL = _record((F8, "value"))

# ---- an environment's state --------------------------------------------------------------------------

ENV = _record(
    (I8, "address settle_at end_at dispatch_at problem_at clients_at threads_at marks_at streams_at queues_at"),
    (I8, "randoms_at jobs_at launches_at flights_at aheads_at edges_at timers_at heap_at"),
    (I8, "tilings_at semaphores_at ended_slices_at saved_blocks_at semaphore_room slice_room saved_room"),
    (I8, "contexts_at sets_at log_at outbox_at cores_at processes_at given_at"),
    (I8, "job_mask launch_room edge_room words log_room"),
    (I8, "over done awake begun ids launch_count to_complete commands illegal stall"),
    (I8, "tenants_at_work tenants_serving external hushed sent real_ps due_ps stands"),
    (I8, "heap_length free_launch free_launches free_flight free_flights free_edge free_edges free_ahead free_aheads"),
    (I8, "pending open_streams short short_ps"),
    (I8, "started_first started_last copy_first copy_last"),
    (I8, "log_rows detail slicer_context slicer_asleep slicer_switching slicer_lonely"),
    (I8, "engine_busy_0 engine_first_0 engine_last_0 engine_busy_1 engine_first_1 engine_last_1 busy_sms"),
    (I8, "now_ps done_ps timer_ps busy_until_ps once_ps slice_end_ps gpu_since_ps"),
    (F8, "traffic power_w busy_sm_us dram_bytes energy_j charged_energy_j charged_makespan_us"),
    (F8, "cpu_traffic dram_left brought_bytes"),
)
"""What there is one of, and where the rest is.

* ``*_at``: addresses, the first ones of compiled functions; then lengths of tables, words of a set of SMs, rows of
  the log beyond what one event may write.
* ``awake``: something happened that a scheduler could react to; ``begun``: a kernel has been launched;
  ``launch_count`` numbers launches in their order; ``stall``: which table is too small (:data:`OVER`: none);
  ``tenants_at_work``, ``tenants_serving``: how many are, :mod:`gpusched_env.workload.host`.
* ``semaphore_room``, ``slice_room``, ``saved_room``: semaphores, tiles of several slices, and records of saved blocks
  that a launch has room for.
* ``once_ps``: when a command was last given that is legal once at an instant.
* ``external``: 1 if a GPU outside carries launches out (:mod:`~gpusched_env.devices.compiled.starting`); ``hushed``: 1
  while the scheduler is not asked, because more has happened than was told; ``sent``: how
  many are in the outbox for it; ``real_ps``: the time up to which the event loop may go (of a GPU outside: the
  present); ``stands``: 1 where it stopped for that, ``due_ps``: when something is due of itself there.
* ``free_*``: first free slot, and how many; ``pending``: launches that wait for the scheduler; ``open_streams``: the
  scheduler's own that have room for a launch of a window; ``short``: 1 if some
  that had come into the window at ``short_ps`` found no slot; ``started_*``: ends of the list of kernels and graphs
  that have started and not finished, in order of launch; ``copy_*``: of copies that are to be handed over.
* ``slicer_*``: the context that has the GPU, and what the slicer waits for; ``engine_*``: copy engines
  (:data:`COPY_ENGINE`); ``traffic``, ``power_w``, ``busy_sms``: the meter's rates.
* ``cpu_traffic``: of the CPU's cores; ``dram_left``: the bandwidth that they leave (bytes/us); ``brought_bytes``:
  into the L2, by all kernels that have ended.
"""

assert ENV.fields is not None
ENGINES_AT: Final = int(ENV.fields["engine_busy_0"][1])
COPY_ENGINE = _record((I8, "busy first last"))
"""A copy engine, and the launches that wait for it; they stand in :data:`ENV`, from byte :data:`ENGINES_AT` on."""

ONCE: Final = ("partitioned_ps", "rejected_ps", "throttled_ps")
"""When a command was last given to a tenant that is legal once at an instant; at first -1."""
CLIENT = _record(
    (I8, "arrived first taken completed rejected due_job host_job busy first_thread threads outstanding slo_misses"),
    (I8, "answered running cached prefills prefill_left"),
    (I8, "kernels_pending kernels_launched pending_first pending_last running_first running_last"),
    (I8, "partition_first partition_sms cursor cursor_order at_work"),
    (I8, "jobs_since_ps last_end_ps regime until trace_first trace_from_ps"),
    (I8, " ".join(ONCE)),
    (I8, "pause_ps owed_ps asleep_until_ps holds_lock"),
    (F8, "host_factor last_turnaround_us mean_turnaround_us launched_profiled_us jobs_us"),
    (F8, "brought_bytes seen_bytes missing"),
    (I8, "l2_job"),
)
"""A tenant at run time.

Jobs are numbered in order of arrival: ``first`` is the oldest that is not gone, ``taken`` the next for the host,
``arrived`` the next to arrive, ``until`` the first that a closed loop does not send any more (below 0: no limit);
``host_job`` is in service (-1: none), ``busy`` of its threads have not done with it.
``outstanding``: operations of its hosts that have not finished; ``at_work``: threads that spend host time, where that
slows other tenants'; ``regime``: of arrivals whose rate switches, 1 in busy times; ``trace_*``: where in its trace the
episode begins; ``pause_ps``: what its host sleeps
before a job, ``owed_ps``: what is added to that, once; ``holds_lock``: the bandwidth lock; ``answered``: jobs that have
completed, or requests that have their first token; ``running``, ``cached``: requests that an engine runs, and their
tokens in its cache; ``prefills``: 1 while its step is a prefill; ``prefill_left``: tokens to prefill after that.
``pending_*``, ``running_*``: ends of the lists of its launches that wait for the scheduler (in order of id), and of
launched ones (in order of launch); ``cursor``: scratch, a place in the latter, and the order of launch there.
``partition_sms``: all of the GPU's without a partition. ``l2_job`` and the three before it: its share of the L2
(:mod:`gpusched_env.devices.rules.l2`)."""

THREAD = _record((I8, "tenant op end state at_work"))
MARK = _record((I8, "launch slot finished ended_ps"))
"""What others of its job wait for: id of the launch (-1: not issued), its slot, and its end."""
STREAM = _record(
    (I8, "outstanding last_slot last_id priority last_end_ps window first_ahead last_ahead held thread_ps")
)
"""A stream: its last launch, the priority of the last kernel handed to it, how many of its launches that were never
launched wait for the scheduler, ends of the list of what was issued into it behind those (:data:`AHEAD`), how many
launches of a window it holds, and when the thread that launches those into it has launched the last one."""
QUEUE = _record((I8, "last_slot last_id"))
"""A stream at a priority: what was handed to it last."""

CORE = _record(
    (I8, "number host first_process processes phase_ps current host_runs locked throttled budget setting always"),
    (I8, "tick_ps since_ps throttled_since_ps set_ps throttled_ps memory_ps compute_ps"),
    (F8, "misses last_misses all_misses"),
)
"""A core of the CPU, as :mod:`gpusched_env.workload.cores.ticking` has them."""
PROCESS = _record((I8, "counted vruntime_ps"), (F8, "misses_per_us bytes_per_us"))
"""A process on a core of the CPU."""

JOB = _record(
    (I8, "state overdue unfinished operations marks first_op first_thread_ops arrived_ps started_ps deadline_ps"),
    (I8, "due_ps first_token_ps"),
    (I4, "prompt answer tokens cached preemptions"),
    (F8, "factor"),
)
"""A job that is not gone, by number. ``due_ps``: when its launches are due; of a serving engine its lengths, and its
tokens so far and in the cache."""

LAUNCH = _record(
    (I8, "id launched_ps deadline_ps order"),
    (I4, "identity job before after flight parent"),
    (I2, "tenant row stream"),
    (I1, "state priority"),
    (I8, "ready_ps issued_ps arrived_ps parent_id"),
    (I4, "op upstream unlaunched previous next edges_out edges_in"),
    (I2, "partition_first partition_sms"),
)
"""An unfinished launch, by slot. Many of them may wait: two cache lines each, the first for what is seen of them then.

* ``identity``: its operation's, or a form of that; ``tenant``, ``job``, ``row``: whose it is, and its program's stream
  (-1: none); ``stream``: the one that it was launched into (-1: none yet, or none), ``priority`` there;
  ``partition_*``: SMs that it is confined to.
* ``before``, ``after``: in its tenant's list of pending ones, or of launched ones; ``previous``, ``next``: unfinished
  ones before and behind it in its program's stream; of a window: in the stream that it was launched into, until it
  ends.
* ``upstream``: unfinished launches that it waits for, ``unlaunched`` those of them that are pending; ``edges_*``: first
  edges to what waits for it and to what it waits for, other than ``next`` and ``previous``.
* ``parent``: slot of the graph that it is a node of, or of the kernel that launched it; -1: none.
* ``flight``: slot of the rest of it, :data:`FLIGHT`; -1: it has something before it. What is pending and has one is
  pending again, after a preemption.
* ``ready_ps``: earliest start; ``order`` of launch; ``arrived_ps``, ``deadline_ps``: of its job.
"""

FLIGHT = _record(
    (I8, "started_ps ran_ps first_started_ps preempted_ps restore_ps dead_ps"),
    (F8, "saved_left"),
    (I4, "slot grid behind started_before started_after offspring done_blocks blocks saved"),
    (I4, "preempting preemptions mode save_first save_sms"),
)
"""What there is to know of a launch from when nothing is before it any more until it has finished.

* ``slot``: of the launch; ``grid``: its slot among the resident grids (-1: none). ``behind``: the launch next in its
  hardware queue, or at its engine. ``started_*``: its neighbours among those that have started, in order of launch.
* ``offspring``: nodes or children that have not finished; ``blocks`` to run when it is next put on the device (-1:
  all); ``done_blocks``: most blocks that had ended when it left the SMs.
* ``started_ps``: of its first block since it was launched last; ``ran_ps``: what it ran before that.
"""

TILING = _record(
    (I8, "producer_id consumer_id"),
    (I4, "producer consumer identity stride grouped saved"),
    (I1, "policy posts order reorder gates gated"),
)
"""What a launch has to do with tiles, by its slot; where the problem has any.

* ``producer``: slot of the launch whose tiles it needs (-1: none), ``identity`` of that; ``policy``, ``stride``,
  ``reorder``: under which it waits for them; :data:`~gpusched_env.hardware.tiles.KERNEL`: for the whole of it.
* ``posts``: the policy under which it posts its own tiles for ``consumer``; ``gates``: 1 if that waits for its start,
  ``gated``: 1 while it has to be launched behind a wait kernel itself.
* ``order``: in which its blocks take their tiles, ``grouped``: the stride of that; ``saved``: records of saved blocks.
"""

SAVED_BLOCK = _record((I8, "number count"), (F8, "left"))
"""Equal blocks of a launch whose tiles are synchronised, saved with ``left`` of their work."""

AHEAD = _record((I8, "id issued_ps"), (I4, "op job after"))
"""What a host has issued into a stream that goes ``in_line``, behind the scheduler's window: it becomes a launch when
it comes into the window (:mod:`~gpusched_env.devices.compiled.hosting`). ``after``: the next in its stream."""

EDGE = _record((I8, "source_id target_id"), (I4, "source target next_out next_in"))
"""``target`` waits for ``source``: slots, with ids to tell whether they still hold these launches."""

TIMER = _record((I8, "at_ps order place"))
"""A timer: when, in which order among events at that time, and where it is in the heap (-1: it is not set)."""

RANDOM = _record((np.uint64, "high low increment_high increment_low"))
"""A generator, see :mod:`~gpusched_env.devices.compiled.hosting`."""

CHANNEL = _record((I8, "first last place"))
"""First and last launch in a hardware queue (-1: empty), and its place among those that were used (-1: it was not),
where they take turns."""

WORD = _record((np.uint64, "bits"))
"""Part of a set of SMs."""

LOG_WHOLE: Final = 12
"""Whole numbers of a row of the log."""
LOG = _record((I8, "table c1 c2 c3 c4 c5 c6 c7 c8 c9 c10 c11 c12"), (F8, "f1 f2"))
"""A row of a table of the timeline (:mod:`gpusched_env.devices.rules.world`)."""

CONTEXT = _record(
    (I8, "channels_at heads_at queue_at grids_at used_at classes_at class_ends_at kinds_at members_at rows_at"),
    (I8, "number words class_room"),
    (I8, "active classes queued waiting grids serial busy_sms resident_threads ahead changed turn"),
    (I8, "begun dispatched ended tiles jumping now_ps next_ps used_queues kinds asks_anew"),
    (F8, "traffic level shared"),
)
"""The SMs as tenants that share them see them. ``class_room``: most classes; ``classes``: in use; ``queued``:
grids with waiting blocks; ``waiting``: heads of hardware queues without a slot; ``grids``: resident, their slots come
first in ``used`` and free ones behind them; ``ahead``: waves that have not begun are accounted for; ``turn``: counts
changes of the queue; ``begun``, ``dispatched``, ``ended``: grids with that mark after a step; ``tiles``: resident
grids whose tiles are synchronised; ``now_ps``: up to when it is simulated (when it was switched out);
``used_queues``: hardware queues that were used, where they take turns; ``kinds``: of SMs of equal traffic;
``asks_anew``: 1 if these have changed since bandwidth was shared; ``traffic``, ``level``: what came of that, see
:class:`~gpusched_env.hardware.contention.Bandwidth`; ``shared``: the bandwidth that was (bytes/us)."""

SM_CLASS = _record(
    (I8, "sms rows threads warps blocks registers shared carveout dirty room eligible leaver leaving"),
    (F8, "demand loading throttle"),
)
"""Equal SMs: their number, rows of residents, resources in use; ``room`` and ``eligible`` are the dispatcher's;
``leaving``: blocks of the grid in slot ``leaver`` that have no row any more, and leave one after the other."""

KIND = _record((I8, "sms"), (F8, "demand loading"))
"""SMs of equal DRAM demand and weight, in the sharing of the bandwidth."""

ROW = _record(
    (I8, "since_ps at_ps end_ps waves"),
    (F8, "left rate time_us floor"),
    (I4, "grid blocks number passed"),
    (I1, "stopped held limited"),
)
"""Equal blocks of one grid on an SM that started together, at ``since_ps``. ``left``: share of their work at
``at_ps``, when their ``rate`` (blocks/us) last changed; ``end_ps``: when they end at that rate, after ``waves`` more
waves on the same slots; ``time_us``: duration of a block before memory throttling; ``stopped``: 1 if they make no
progress, for a preemption.

Where tiles are synchronised: ``number`` of a block that stands for them (-1: they are not); ``passed``: how many of the
times that they wait are over; ``limited``: 1 if ``end_ps`` is when they come to the next one, with ``floor`` of their
work left; ``held``: 1 while they wait."""

GRID = _record(
    (I8, "slot launch threads warps registers shared_bytes carveout fit residents waiting resident saved"),
    (I8, "priority first sms"),
    (I8, "queued begun told serial dispatched ended waiting_was resident_was saved_was place"),
    (I8, "total tiled"),
    (F8, "latency_us rho log_idle wait dram_bytes spread saved_left"),
)
"""A resident grid. ``slot``, ``launch``: slot and id of its launch; ``first``, ``sms``: its partition; ``fit``: most
blocks on an SM that there is room for; ``residents``: most that one holds at a time; ``queued``: a state below;
``*_was``: scratch of :mod:`~gpusched_env.devices.compiled.ends`; ``place`` in the list of used slots; ``total``: blocks
of the kernel; ``tiled``: 1 if its tiles are synchronised."""


# Phases of events at equal times, in their order (docs/devices.md); block ends come before all of them.
SLICER: Final = 0
PREEMPTION: Final = 1
ENGINE: Final = 2
STREAMS: Final = 3
ARRIVALS: Final = 4
HOSTS: Final = 5
DEADLINES: Final = 6
PREEMPTION_BEGINS: Final = 7
CORES: Final = 8
PHASE: Final = 1 << 48
"""Factor on the phase in a timer's order, beyond all ids."""

# States of a launch.
FREE: Final = 0
HIDDEN: Final = 1
"""A child that is on its way to be issued."""
PENDING: Final = 2
LAUNCHED: Final = 3
"""A launch that waits in a stream."""
READY: Final = 4
"""A launch in a hardware queue or resident, a copy at its engine, or a graph with nodes that run."""
EMPTIED: Final = 5
"""A launch whose blocks have ended; its children have not, or nobody knows yet (:data:`STREAM_ROW`, ``windowed``)."""

# States of a grid.
NOT_QUEUED: Final = 0
"""A grid whose blocks are all handed out, or that is to hand out no further ones."""
IN_QUEUE: Final = 1
RETURNS: Final = 2
"""A grid that is not in the queue, but will be again: saved blocks are being read back."""

# Sets of SMs used as scratch.
PICK: Final = 0
PARTITION: Final = 1
TODO: Final = 2
RUN: Final = 3
PLUS: Final = 4
SINGLE: Final = 5
SETS: Final = 6

BLOCKS: Final = 3
"""The detail of a timeline that keeps blocks (a place in :data:`gpusched_env.scheduling.timeline.DETAILS`)."""

# Why the event loop returned.
OVER: Final = 0
"""The episode has ended."""
DECIDE: Final = 1
"""A scheduler is asked."""
DEADLOCK: Final = 2
GROW_JOBS: Final = 3
"""The ring of jobs is full."""
GROW_LAUNCHES: Final = 4
"""There are too few slots for launches, for edges, or for what hosts issue ahead."""
FLUSH: Final = 5
"""The log is full."""
IDLE: Final = 6
"""Nothing is due up to the time up to which it may go."""

NONE: Final = -1
"""No slot, row, id or number."""
