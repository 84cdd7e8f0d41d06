"""Command groups of the command line, one a file: each has ``register(app)`` and imports its libraries when run."""
