"""The agent of ``gpusched/SharedMemory-v0``: a small network that sets the budget of each CPU core."""
