"""Dispatchers of a fleet, one file a way of sharing GPUs."""
