"""Searches for hyper-parameters: Optuna on one machine, or Ray Tune on a cluster."""
