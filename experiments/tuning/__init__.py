"""The search for options of hand-written schedulers: the same budget for each, on training workloads."""
