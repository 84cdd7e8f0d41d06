"""Policies that place pods on a cluster, as schedulers by name."""
