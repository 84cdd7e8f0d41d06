"""The environment of task queues."""
