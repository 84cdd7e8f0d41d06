"""What a fleet does between two reports, compiled."""

from __future__ import annotations

from gpusched_env.compiling import native
from gpusched_env.games.fleet.windows import advance, place_arrived, run_windows


@native()
def advance_compiled(fleet, control, rates, report_us, restart_us):
    """The compiled :func:`advance`."""
    advance(fleet, control, rates, report_us, restart_us)


@native()
def run_windows_compiled(fleet, rule, control, rates, report_us, restart_us, counts):
    """The compiled :func:`run_windows`."""
    run_windows(fleet, rule, control, rates, report_us, restart_us, counts)


@native()
def pack_compiled(fleet, rule):
    """The compiled :func:`place_arrived`."""
    place_arrived(fleet, rule)
