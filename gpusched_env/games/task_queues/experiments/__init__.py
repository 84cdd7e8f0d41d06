"""Queues of tasks, the game of ``TaskQueue``: its schedulers, episodes and fuzzer."""
