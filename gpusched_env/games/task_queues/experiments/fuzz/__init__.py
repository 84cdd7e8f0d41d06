"""Fuzzing of the devices of task queues: random graphs, queues, machines and forms that change."""
