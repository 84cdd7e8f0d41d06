"""The paper's modes of sharing as schedulers, FIKIT told or set otherwise, and what is switched off for controls."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from gpusched_env.experiments.lib.recorded import RECORDED_ON
from gpusched_env.scenarios.profile_error import ProfileError

GPU = "rtx-3090"
"""Stands in for the paper's, which is not known."""
EPSILON_US = 100.0
"""Gaps that FIKIT leaves idle between processes: the paper's threshold as it is remembered, not known for certain. A
switch there and back costs more than most gaps are long. Under MPS, where there is none, it is the scheduler's
default."""
COST_US = 1.0
"""Host time that FIKIT's interception adds to a decision. It is not stated, only that its overhead is below 5 %."""

DEFAULT, EXCLUSIVE, FIKIT, UNDER_MPS = "default sharing", "exclusive", "FIKIT", "FIKIT under MPS"
AS_PROCESSES = f"contexts=per-tenant,interception_us={COST_US}"
"""Arguments of a FIKIT whose services are processes that the GPU switches between."""
SHARED = f"contexts=shared,interception_us={COST_US}"
"""The same where services share a context."""
CONTINUOUS = {
    DEFAULT: "time-slicing",
    EXCLUSIVE: "exclusive",
    FIKIT: f"fikit({AS_PROCESSES},epsilon_us={EPSILON_US})",
    UNDER_MPS: f"fikit({SHARED})",
}
"""Both services without a pause: schedulers by the paper's name of a mode. In exclusive mode jobs take turns in order
of arrival, whatever their priority."""

NEVER_US = 1e9
"""A threshold that no gap reaches."""


class Setting(NamedTuple):
    """Where FIKIT is judged, and its mechanisms switched off there, one at a time: modes."""

    gpu: str
    fikit: str
    nothing_filled: str
    """The threshold lies above every gap; the less urgent wait while anybody more urgent has a job."""
    one_queue: str
    """No priorities: the oldest job holds the GPU, whosever it is. Gaps are filled."""

    @property
    def text(self) -> str:
        """For tables."""
        return f"{self.gpu}, {'MPS' if self.fikit == UNDER_MPS else 'processes'}"


PROCESSES = Setting(GPU, FIKIT, "FIKIT, nothing filled", "FIKIT, one queue")
"""As the paper is remembered: services are processes. Nearly every gap is shorter than the threshold."""
MPS = Setting(RECORDED_ON, UNDER_MPS, "FIKIT under MPS, nothing filled", "FIKIT under MPS, one queue")
"""The recordings as they are, with a threshold below the gaps: here gaps are filled."""
SETTINGS = (PROCESSES, MPS)
IN_TURN = (EXCLUSIVE, PROCESSES.one_queue, MPS.one_queue)
"""Modes in which jobs wait for whole jobs of others."""
NO_SCHEDULER = "MPS alone"
"""What remains of FIKIT under MPS without FIKIT; of processes that is default sharing."""
CONTROLS = {
    PROCESSES.nothing_filled: f"fikit({AS_PROCESSES},epsilon_us={NEVER_US})",
    PROCESSES.one_queue: f"fikit({AS_PROCESSES},epsilon_us={EPSILON_US},queues=1)",
    MPS.nothing_filled: f"fikit({SHARED},epsilon_us={NEVER_US})",
    MPS.one_queue: f"fikit({SHARED},queues=1)",
    NO_SCHEDULER: "mps",
}

LOADS = (0.1, 0.3)
"""Of intermittent high-priority requests: shares of the time that they would take alone. Not stated."""
SHARED_NOW_AND_THEN = {PROCESSES: LOADS[:1], MPS: LOADS}
"""Loads by setting. Between processes hardly anything is filled at any."""


def now_and_then(mode: str, load: float) -> str:
    """The ``mode`` in which high-priority requests come now and then, at ``load``."""
    return f"{mode}, intermittent, {load:.0%}"


_NOW_AND_THEN = {
    now_and_then(mode, load): (load, mode)
    for setting, loads in SHARED_NOW_AND_THEN.items()
    for load in loads
    for mode in (DEFAULT, setting.fikit, setting.nothing_filled)
}
INTERMITTENT = {mode: load for mode, (load, _) in _NOW_AND_THEN.items()}
"""Preemptive sharing: the low-priority service runs without a pause, high-priority requests come now and then. Loads by
mode."""
SLICES = {f"{DEFAULT}, slice of {slice_us / 1e3:g} ms": slice_us for slice_us in (1000.0, 4000.0)}
"""Time slices (us) besides the GPU's own 2 ms; Gilman and Walls also speak of 4 ms."""
ALONE, FIKIT_ALONE, MEASURED = "alone", "FIKIT alone", "measurement stage"
INTERCEPTED = {cost_us: f"FIKIT alone, {cost_us:g} us" for cost_us in (2.0, 5.0, 10.0)}
"""Costs of interception besides :data:`COST_US`."""
BY_ITSELF = {
    ALONE: "pass-through",
    FIKIT_ALONE: CONTINUOUS[FIKIT],
    MEASURED: "fifo",
    **{mode: f"fikit(interception_us={cost_us})" for cost_us, mode in INTERCEPTED.items()},
}
"""One service: without a scheduler; through FIKIT's interception; one kernel at a time, as while it is measured."""

RIGHT, MEASURED_IN, RUNS = "right profiles", "measured in 3 runs", 3
CASES = {
    RIGHT: ProfileError(),
    MEASURED_IN: ProfileError(),
    "durations doubled": ProfileError(durations=2.0),
    "durations halved": ProfileError(durations=0.5),
    "gaps doubled": ProfileError(gaps=2.0),
    "gaps halved": ProfileError(gaps=0.5),
    "each off by up to 2": ProfileError(scatter=2.0),
    "a tenth never measured": ProfileError(forget=0.1),
    "nothing measured": ProfileError(forget=1.0),
}
"""What is wrong with the profiles that FIKIT is told, under MPS."""
CONTEXTS, EPSILONS_US = ("shared", "per-tenant"), (3.0, 20.0, 50.0, 100.0, 200.0)
SWEEP = {of: f"FIKIT, {of[0]}, threshold {of[1]:g} us" for of in itertools.product(CONTEXTS, EPSILONS_US)}
"""Services under MPS or as processes, and thresholds of the gaps that are filled, with right profiles."""
MODES = {
    **CONTINUOUS,
    **CONTROLS,
    **{mode: ({**CONTINUOUS, **CONTROLS})[of] for mode, (_, of) in _NOW_AND_THEN.items()},
    **BY_ITSELF,
    **dict.fromkeys(SLICES, CONTINUOUS[DEFAULT]),
    **dict.fromkeys(CASES, CONTINUOUS[UNDER_MPS]),
    **{
        mode: f"fikit(contexts={contexts},epsilon_us={epsilon_us},interception_us={COST_US})"
        for (contexts, epsilon_us), mode in SWEEP.items()
    },
}
