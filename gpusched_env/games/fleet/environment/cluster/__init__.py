"""Placing pods on a cluster as an environment: candidates, observations, episodes, and problems that are drawn."""
