"""The readable device: plain Python and SimPy, a class a concept, block by block.

The rules are in ``docs/devices.md``; the laws of contention, placement and power in :mod:`gpusched_env.hardware`; hosts
and arrivals in :mod:`gpusched_env.workload.host`; what the compiled device does in the same way (the meter, the L2,
rows of views, logs) in :mod:`gpusched_env.devices.rules`. One file a mechanism, in the order in which a kernel meets
them: ``clock``, ``setting`` (what all share), ``world`` (what these texts work on), ``launch``; ``streams``, with
``lines`` (of programs), ``windows`` and ``offspring`` (of graphs and kernels): what waits for what; ``tiling``;
``context`` (hardware queues), ``dispatcher`` (which block goes where), ``grid`` and ``blocks``, ``rates`` (how fast
they progress); ``copies``, ``slicer``, ``preemption``; ``decisions`` (commands), ``views``, ``costs``. ``device`` ties
them together; ``history`` is what a snapshot of it consists of.
"""
