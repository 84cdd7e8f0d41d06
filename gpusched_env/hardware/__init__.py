"""What a GPU is and does: specifications as data, and pure functions of its physics.

Nothing here knows of workloads, schedulers or simulated time: every function maps plain numbers (or
records of them, see :mod:`~gpusched_env.hardware.records`) to plain numbers and can be called from
Python and from Numba-compiled code alike, so that all simulated devices share one physics.
"""
