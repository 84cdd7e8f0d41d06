"""Separate processes without MPS: the GPU belongs to one context at a time, in round-robin slices.

Gilman and Walls (Performance 2021), time slicing: slices of about 2 ms, tenants never overlap;
Bakita and Anderson, *Demystifying NVIDIA GPU Internals* (RTAS 2024), section on runlists and
time-slice groups. Slice and switch cost come from the GPU's specification.
"""

from __future__ import annotations

from gpusched_env.baselines.pass_through import PassThrough


class TimeSlicing(PassThrough):
    """Every tenant is its own process; the driver gives the whole GPU to one of them per time slice."""

    contexts = "per-tenant"
