"""Learned schedulers: policies, training, and trained weights."""
