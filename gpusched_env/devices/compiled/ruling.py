"""The world that :mod:`gpusched_env.devices.rules` works on in compiled code: its access functions on records.

Importing this module lets Numba compile the rules for an ``ENV`` record.
"""

from __future__ import annotations

from gpusched_env.devices.compiled.access import copies, flight_of, ops
from gpusched_env.devices.compiled.overloading import on_records
from gpusched_env.devices.rules import world


@on_records(world.flight)
def _flight(w, launch):
    return flight_of(w, launch)


@on_records(world.job_number)
def _job_number(w, launch):
    return launch.job


@on_records(world.copied_bytes)
def _copied_bytes(w, copy):
    return copies(w, ops(w, copy.op).more).bytes
