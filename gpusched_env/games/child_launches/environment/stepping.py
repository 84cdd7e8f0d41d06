"""What environments of dynamic parallelism do in compiled code."""

from __future__ import annotations

from gpusched_env.compiling import cached
from gpusched_env.games.child_launches.devices.compiled.loop import ASKS, decide_and_run_on
from gpusched_env.games.child_launches.environment.encoding import encode, monitored


@cached()
def step(state, spawn, costs, out):
    """Answer the present request and go on to the next one, whose columns are written; gives the loop's status."""
    status = decide_and_run_on(state, spawn)
    if status == ASKS:
        encode(state.request[0], monitored(state.monitor[0]), costs, out)
    return status
