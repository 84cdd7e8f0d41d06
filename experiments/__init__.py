"""Experiments: comparisons of schedulers, their reports and traces, and the command line ``gpusched``."""
