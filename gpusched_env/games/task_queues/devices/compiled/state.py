"""The tables of a run, and how they are filled when a form begins."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.task_queues.applications import Data
from gpusched_env.games.task_queues.device import LOG, QUEUE, TOTALS
from gpusched_env.games.task_queues.problem import MOST_FETCH, Form, TaskProblem

NEVER: Final = 1 << 60
"""Times behind the end of all runs, ps."""
UNSET, COMING, LOOKING, PARKED, ROUND, WRITING = range(6)
"""What a worker's next event is: none; its first grab; a look at the queue; a look after others that found nothing; the
end of a round; a publication."""

MOST_KERNELS: Final = 1 << 20
"""Kernels that wait or run at a time; each has a task at least. Their rows are used again, in turn."""

Table = NDArray[np.void]


def _whole(*names: str) -> list[tuple[str, type]]:
    return [(name, np.int64) for name in names]


RULES: Final = np.dtype(
    _whole(
        "kind",
        "gpus",
        "places",
        "voters",
        "workers",
        "warps",
        "block",
        "persistent",
        "synchronous",
        "fetch",
        "polls",
        "delta",
        "split",
    )
    + _whole("opening_ps", "slot_ps", "push_ps", "write_ps", "poll_ps", "refresh_ps", "grab_ps", "atomic_ps")
    + _whole("host_launch_ps", "launch_ps", "copy_ps", "sync_ps", "repair_ps", "back_ps")
    + _whole("link_places", "batch", "wait", "look_ps", "lands_ps", "announced_ps", "answer_ps", "fence_ps")
    + _whole("segments")
    + [(name, np.float64) for name in ("damping", "epsilon", "task_ps", "crowding")]
)
"""The form, the machine, the link and the application; switches as 0 and 1. ``voters``: of all GPUs; ``workers``: of
each; ``split``: there are two queues; ``batch``: 0, tasks are pushed."""
CORE: Final = np.dtype(
    _whole("now_ps", "finished", "put_back", "logged", "live", "leaving", "leaves")
    + _whole("host_ps", "host", "link_ps", "link", "failed_queue", "failed_worker", "failed_link")
)
"""``leaving``: another form waits; ``leaves``: half of the tree; ``host_ps``, ``host``: when a host does something
next, and of which GPU; ``link_ps``, ``link``: of links. ``failed_*``: what had no room, -1: nothing."""
HOST: Final = np.dtype(
    _whole("memory_free_ps", "base", "read_ps", "active", "threshold", "empty")
    + _whole("kernels", "arrived", "head", "ended")
    + [("free", np.int64), ("ps_per_edge", np.float64)]
)
"""The host of a GPU; ``base``: where the form's first segment begins; ``empty``: copies in a row without news;
``head``: the first kernel with blocks that have no place; ``free``: places without a block."""
LINK: Final = np.dtype(
    _whole("free_ps", "first_look_ps", "send_ps", "waiting", "new", "first", "next")
    + _whole("announced", "landed", "departed")
)
"""A link from one GPU to another; ``waiting``: tasks in the aggregation queue, with its ``first_look_ps`` and the look
at which it sends, ``send_ps``; ``new``: tasks of the present round; ``first`` to ``next``: places in use; the others
count messages."""
MAIL: Final = np.dtype(
    [*_whole("vertex", "lands_ps", "announced_ps", "first", "count", "kept", "worker"), ("value", np.float64)]
)
"""Two things by turns, as there are no more messages than tasks: what is sent (``vertex``, once it has landed the task,
or 0; ``value``); and messages, those that go over a link together (``kept``: how many improve something)."""
COUNTERS: Final = np.dtype(QUEUE.descr + _whole("start_free_ps", "alloc_free_ps", "written_free_ps", "new"))
"""The counters of a queue; ``new``: tasks that the present round has put at its back."""
WORKER: Final = np.dtype(
    _whole(
        "next",
        "gpu",
        "queue",
        "index",
        "limit",
        "count",
        "edges",
        "rounds",
        "round",
        "task",
        "slot",
        "crowd",
        "since_ps",
    )
    + _whole("fruitless", "threshold", "kernel", "first_0", "new_0", "first_1", "new_1", "improved")
)
"""``task``, ``slot``: of a warp's round; ``crowd``: edges of the round; ``since_ps``: its last look that counts;
``first_*``, ``new_*``: what it is writing to each queue; ``improved``: tasks of its present push that have improved
something on other GPUs."""
KERNEL: Final = np.dtype(_whole("queue", "next", "limit", "threshold", "arrives_ps", "running"))


class TaskState(NamedTuple):
    """All that changes during a run."""

    rules: Table
    core: Table
    hosts: Table
    links: Table
    """A row for each pair: that of the sender times the GPUs, plus the owner."""
    mail: Table
    """(links x places,) those of each link are used in turn."""
    totals: Table
    counters: Table
    items: NDArray[np.int64]
    workers: Table
    due: NDArray[np.int64]
    """A tree of the smallest: four times the time of each worker's next event, plus its rank."""
    owner: NDArray[np.int32]
    """(GPUs x places,) of a persistent form, who has a segment, by its number since the form's beginning; of others,
    places without a block, of which the last is taken first."""
    edges_before: NDArray[np.int32]
    """(workers, tasks of a step + 1) of a block's step."""
    held: NDArray[np.float64]
    """(workers, tasks of a step) the depth at which a task was taken, what each neighbour gets of its residual, or what
    a colouring found out."""
    kernels: Table
    """(GPUs x kernels,) the kernels of each GPU."""
    log: Table
    data: Data


def new_state(problem: TaskProblem) -> TaskState:
    """The state of a problem, before its first form."""
    gpus = problem.gpus
    counters = np.zeros(2 * gpus, COUNTERS)
    items = np.zeros((2 * gpus, problem.places), np.int64)
    for gpu, tasks in enumerate(problem.initial()):
        items[2 * gpu, : len(tasks)] = tasks
        for name in ("alloc", "count", "top", "end"):
            counters[name][2 * gpu] = len(tasks)
    hosts = np.zeros(gpus, HOST)
    hosts["ps_per_edge"] = problem.ps_per_edge
    links = np.zeros(gpus * gpus, LINK)
    links["send_ps"] = NEVER
    return TaskState(
        rules=np.zeros(1, RULES),
        core=np.zeros(1, CORE),
        hosts=hosts,
        links=links,
        mail=np.empty(gpus * gpus * problem.link_places if gpus > 1 else 0, MAIL),
        totals=np.zeros(1, TOTALS),
        counters=counters,
        items=items,
        workers=np.zeros(0, WORKER),
        due=np.zeros(0, np.int64),
        owner=np.zeros(0, np.int32),
        edges_before=np.zeros((0, 0), np.int32),
        held=np.zeros((0, 0)),
        kernels=np.empty(gpus * min(2 * problem.places + 1, MOST_KERNELS), KERNEL),
        log=np.zeros(problem.log, LOG),
        data=problem.data(),
    )


def with_form(problem: TaskProblem, form: Form, state: TaskState) -> TaskState:
    """The same run with the tables of another form."""
    shape, gpus = problem.shape(form), problem.gpus
    workers = gpus * shape.workers
    leaves = 1 << max(1, (workers - 1).bit_length())
    state.rules[0] = _rules(problem, form)
    core, hosts = state.core[0], state.hosts
    persistent = form.strategy == "persistent"
    core["leaves"], core["leaving"], core["failed_queue"], core["failed_link"] = leaves, 0, -1, -1
    core["live"] = gpus * min(shape.grid, shape.workers) if persistent else 0
    core["host_ps"] = NEVER
    if not state.totals[0]["flying"]:
        core["link_ps"] = NEVER
    hosts["base"], hosts["threshold"] = state.counters["start"][::2], form.threshold
    hosts["read_ps"], hosts["free"] = NEVER, shape.workers
    for name in ("active", "empty", "kernels", "arrived", "head", "ended"):
        hosts[name] = 0
    state.totals[0]["voted"] = state.totals[0]["idle"] = 0
    numbers = np.arange(workers).reshape(gpus, shape.workers)
    rows = np.zeros(workers, WORKER)
    rows["gpu"] = np.repeat(np.arange(gpus), shape.workers)
    rows["queue"] = 2 * rows["gpu"]
    segments = int(state.rules[0]["segments"])
    owner = np.zeros(gpus * segments, np.int32) if persistent else numbers[:, ::-1].astype(np.int32).ravel()
    return state._replace(
        workers=rows,
        due=np.full(2 * leaves, 4 * NEVER, np.int64),
        owner=owner,
        edges_before=np.empty((workers, MOST_FETCH + 1), np.int32),
        held=np.empty((workers, MOST_FETCH)),
    )


def _rules(problem: TaskProblem, form: Form) -> tuple[Any, ...]:
    machine, shape, block = problem.machine, problem.shape(form), form.worker == "block"
    values = {name: getattr(machine, name) for name in RULES.names or () if hasattr(machine, name)}
    values |= {
        **problem.link_times._asdict(),
        **problem.prices(form)._asdict(),
        "kind": problem.kind,
        "gpus": problem.gpus,
        "places": problem.places,
        "segments": problem.places // form.fetch + 2 * shape.workers + 2,
        "link_places": problem.link_places,
        "batch": problem.link.batch or 0,
        "wait": problem.link.wait,
        "look_ps": problem.link.look_ps,
        "voters": problem.gpus * shape.grid,
        "workers": shape.workers,
        "warps": shape.warps,
        "block": block,
        "persistent": form.strategy == "persistent",
        "synchronous": form.strategy == "bulk-synchronous",
        "fetch": form.fetch,
        "polls": problem.polls_of(form),
        "delta": form.delta,
        "split": form.threshold > 0,
        "back_ps": machine.push_ps,
        "damping": problem.damping,
        "epsilon": problem.epsilon,
        "slot_ps": problem.slot_ps,
    }
    return tuple(values[name] for name in RULES.names or ())
