"""The fast device: the reference device's semantics as compiled code over arrays, batched over environments.

One file a mechanism, with the reference's names: ``host``, ``stream``, ``copies``, ``slicer``, ``preemption``,
``context``, ``dispatch``, ``sharing``, ``blocks``. ``classes`` is what makes it fast: SMs that hold the same are
simulated once. ``layout`` describes the state, ``loop`` the order of events, ``entry`` what Python calls.
"""
