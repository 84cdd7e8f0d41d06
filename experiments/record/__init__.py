"""``gpusched record``: recordings of the GPU at hand, in the formats that ``validate`` and ``calibrate`` read.

``library.py`` and ``scenarios.py`` draw what is recorded, ``sets.py`` has a function for each file, ``run.py`` writes
them. ``gpu.py`` runs synthetic kernels (``work.cu``) through CuPy, ``blocks.py`` makes figures of what their blocks
reported. ``networks.py`` builds PyTorch models, ``torch_gpu.py`` captures and traces them, ``graphs.py`` replays them
alone and in pairs. ``sharing.py`` says what is recorded of inference beside training, ``sharing_gpu.py`` runs both,
``other_tasks.py`` has the thread or process beside, ``ready_tasks.py`` the tasks, launched by Python
(``eager_task.py``) or by compiled code (``compiled_task.py``, ``repeating.cpp``).
"""
