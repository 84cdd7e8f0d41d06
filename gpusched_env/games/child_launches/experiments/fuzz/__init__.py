"""Fuzzing of the devices at the granularity of warps: random applications whose threads launch kernels."""
