"""Applications whose kernels launch kernels, run as the algorithms that they are: what each thread has to do.

``launches.py`` has the data types, ``warps.py`` groups warps of equal work, families of applications have a file
each, ``suite.py`` the thirteen benchmarks of SPAWN (and one more) and random ones.
"""
