"""The readable device: SimPy processes around a block-level simulation of the SMs.

One file a mechanism: ``host`` (processes that issue work), ``stream`` (order and launch latencies),
``dispatcher`` (which block goes where), ``blocks`` (progress of resident blocks), ``slicer`` (contexts
that take turns), ``copies`` (copy engines), ``preemption``. ``device`` ties them together.
"""
