"""What a GPU is and does: specifications as data, and pure functions of its physics.

Nothing here knows of workloads, schedulers or simulated time: laws (:func:`~gpusched_env.compiling.law`) map plain
numbers to plain numbers and can be called from Python and from Numba-compiled code alike, so that all simulated
devices share one physics.
"""
