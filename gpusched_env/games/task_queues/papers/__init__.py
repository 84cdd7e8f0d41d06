"""Papers about task queues: a module or a folder each, as in :mod:`gpusched_env.experiments.papers`."""
