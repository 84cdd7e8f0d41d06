"""Hand-written schedulers, one file a system or policy, each with its citation; see ``registry``."""
