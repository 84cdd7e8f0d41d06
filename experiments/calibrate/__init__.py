"""``gpusched lab calibrate``: the few constants of a GPU, fitted to recordings of one kernel alone."""
