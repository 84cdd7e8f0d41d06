"""Command groups of the command line, one a file; commands import their libraries when run."""
