"""Settings of every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Neither an example nor drawing one may fail for being slow: the first use of a device compiles, and machines differ.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
