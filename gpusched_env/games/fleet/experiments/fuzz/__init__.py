"""Fuzzing of fleets: random GPUs, jobs and commands, on compiled code and on the same text as plain Python."""
