"""The agent that places pods on a cluster: its rule, its trainings."""
