"""Schedulers of child launches, one file a published system."""
