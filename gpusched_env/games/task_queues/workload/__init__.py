"""Graphs for queues of tasks: by class, and from files."""
