"""Agents of task queues."""
