"""Measurements of kernels that launch kernels on a real GPU; they need CuPy (the extra ``gpu``).

``program.py`` is the program. ``child_launches.py`` takes the cost of launches and tries too many,
``applications.py`` takes the time of whole applications, whose inputs it has. ``prediction.py`` predicts
them. The CUDA sources lie beside.
"""
