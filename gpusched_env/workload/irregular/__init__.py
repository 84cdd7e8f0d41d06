"""Random irregular kernel graphs to train on: workloads of the recorded kinds, each from a seed.

A workload is named where others are, ``irregular(family=physics,seed=3)``. The families follow the recordings in
:mod:`gpusched_env.data` and the networks of Durvasula et al. (arXiv 2401.12377, section 2). Which kernels depend on
each other follows from the memory that they touch and from nothing else: tensors come from an allocator that hands
freed memory out again, so that a kernel may wait for one whose result it does not need.
"""
