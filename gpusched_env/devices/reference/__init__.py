"""The readable device: plain Python and SimPy, a class a concept, block by block.

The rules are in ``docs/devices.md``; the laws of contention, placement and power in :mod:`gpusched_env.hardware`; hosts
and arrivals in :mod:`gpusched_env.workload.host`; what the compiled device does in the same way (the meter, the L2,
rows of views, logs) in :mod:`gpusched_env.devices.rules`. In the order in which a kernel meets them: ``world`` (the
clock, and what all share), ``launch`` and ``streams`` (what waits for what), ``tiling``, ``context`` (hardware queues,
copy engines), ``dispatcher`` (which block goes where), ``blocks`` (how fast they progress), ``preemption`` (and turns
on the GPU), ``decisions`` (commands and views). ``device`` ties them together.
"""
