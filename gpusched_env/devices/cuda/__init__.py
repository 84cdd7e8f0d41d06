"""A real GPU behind the scheduling contract: hosts and schedulers in real time, kernels on the GPU."""
