"""The readable device: plain Python and SimPy, a class a concept, block by block.

The rules are in ``docs/devices.md``; the laws of contention, placement and power in :mod:`gpusched_env.hardware`; hosts
and arrivals in :mod:`gpusched_env.workload.host`. One file a mechanism: ``clock``, ``setting`` (what all share),
``world`` (what hosts run on), ``launch``, ``streams`` and ``windows`` (what waits for what), ``context`` (hardware
queues), ``dispatcher`` (which block goes where), ``blocks`` and ``grid``, ``rates`` (how fast they progress),
``slicer``, ``copies``, ``preemption``, ``decisions`` (commands), ``meter``, ``views``. ``device`` ties them together.
"""
