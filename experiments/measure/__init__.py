"""Measurements on a real GPU, kept in ``gpusched_env/data/measurements``; they need CuPy (the extra ``gpu``).

``recording.py`` has the rows that they write, and reads them again. ``tiles.py`` is the program for kernels that
synchronise their tiles, ``tile_page.py`` that for their page. The CUDA sources lie beside.
"""
