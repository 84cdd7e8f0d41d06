"""A cluster whose pods come, wait for room, run and go."""
