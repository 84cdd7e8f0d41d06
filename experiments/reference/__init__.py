"""Pages written from docstrings and result files: ``python -m gpusched_env.experiments.reference docs``."""
