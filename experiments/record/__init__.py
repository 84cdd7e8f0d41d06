"""``gpusched lab record``: recordings of the GPU at hand, in the formats that ``validate`` and ``calibrate`` read.

``library.py`` draws what is recorded and makes figures of what blocks reported, ``sets.py`` has a function for each
file, ``run.py`` writes them. ``gpu.py`` runs synthetic kernels (``work.cu``) through CuPy. ``networks.py`` builds
PyTorch models, ``torch_gpu.py`` captures and traces them, ``graphs.py`` replays them alone and in pairs.
``sharing.py`` says what is recorded of inference beside training, ``sharing_gpu.py`` runs both in threads or
processes, ``tasks.py`` has the tasks, launched by Python or by compiled code (``repeating.cpp``). ``processes.py`` has
pairs of programs that Python launches, ``board.py`` energy and clocks meanwhile. ``scatters.py`` has kernels that add
to drawn places and long grids before short kernels, ``capped.py`` a client that is held to some SMs.
"""
