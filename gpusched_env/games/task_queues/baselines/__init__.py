"""Schedulers of task queues."""
