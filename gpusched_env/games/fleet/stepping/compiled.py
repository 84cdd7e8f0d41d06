"""What a fleet does between two reports, compiled."""

from __future__ import annotations

from gpusched_env.compiling import cached
from gpusched_env.games.fleet.windows import advance, place_arrived, run_windows


@cached()
def advance_compiled(fleet, control, rates, report_us, restart_us):
    """:func:`advance`, compiled."""
    advance(fleet, control, rates, report_us, restart_us)


@cached()
def run_windows_compiled(fleet, rule, control, rates, report_us, restart_us, counts):
    """:func:`run_windows`, compiled."""
    run_windows(fleet, rule, control, rates, report_us, restart_us, counts)


@cached()
def pack_compiled(fleet, rule):
    """:func:`place_arrived`, compiled."""
    place_arrived(fleet, rule)
