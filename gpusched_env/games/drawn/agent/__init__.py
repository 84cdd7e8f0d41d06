"""The agent that chooses among rules, for scenarios that nobody has seen."""
