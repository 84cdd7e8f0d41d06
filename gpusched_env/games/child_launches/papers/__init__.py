"""Papers about child launches: a module or a folder each, as in :mod:`gpusched_env.experiments.papers`."""
