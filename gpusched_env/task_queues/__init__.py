"""Queues of tasks in device memory: the problem, its applications, and what a device and a scheduler of it are."""
