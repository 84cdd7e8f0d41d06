"""FIKIT's experiments with the shipped recordings (Wu, arXiv 2311.10359v5, 2024)."""
