"""A cluster of nodes with CPU, memory and GPUs, pods that ask for them, and policies that place pods on nodes."""
