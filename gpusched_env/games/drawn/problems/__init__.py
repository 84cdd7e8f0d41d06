"""Distributions of scenarios, their splits, and the scenario of a number."""
