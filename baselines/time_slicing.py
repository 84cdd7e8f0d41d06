"""Separate processes without MPS: the GPU belongs to one context at a time, in round-robin slices.

==================================== ================================================== ================================
Rule                                 Where                                              Here
==================================== ================================================== ================================
Contexts of different processes      Gilman and Walls (Performance 2021), time slicing; As published
never overlap                        Bakita and Anderson, *Demystifying NVIDIA GPU
                                     Internals* (RTAS 2024), runlists
A slice lasts about 2 ms             Gilman and Walls, as measured                      The GPU's, from its
                                                                                        specification, as the cost of a
                                                                                        switch
A process can be given slices of     NVIDIA DRIVE OS, ``NVRM_GPU_CHANNEL_TIMESLICE``    ``slice_us``, one for all
another length, of 1 ms or more      (scheduling parameters)                            processes; shorter ones, too
==================================== ================================================== ================================
"""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.ranges import Range
from gpusched_env.errors import InputError
from gpusched_env.scenarios.set_up import SetUp


class TimeSlicing(PassThrough):
    """Every tenant is its own process; the driver gives the whole GPU to one of them per time slice."""

    ranges: ClassVar = {"slice_us": Range(200.0, 20_000.0, log=True)}

    def __init__(self, slice_us: float | None = None) -> None:
        """``slice_us``: length of a slice (> 0); ``None``: the GPU's.

        Raises:
            InputError: ``slice_us`` is not above 0.
        """
        if slice_us is not None and not slice_us > 0.0:
            raise InputError(f"time-slicing: slice_us is {slice_us}, must be above 0, or none for the GPU's")
        self.set_up = SetUp(contexts="per-tenant", slice_us=slice_us)
