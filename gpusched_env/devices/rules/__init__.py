"""Rules that both simulated devices follow by one text, because both carry them out in the same way.

The reference device runs it as plain Python, the compiled device compiles it, as they do with the hosts of
:mod:`gpusched_env.workload.host`. It works on a *world* ``w`` by access functions (:mod:`.world`). Where the devices
have different algorithms (blocks against classes of SMs, dispatch, rates, preemption, tiles, streams) there are two
texts, and the fuzzer compares what they do.
"""
