"""Drawn scenarios: each episode another GPU, other tenants, arrivals, objectives and profiles, in frozen splits."""
