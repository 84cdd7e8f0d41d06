"""Named scheduling problems as data files, and their resolution into what a device runs."""
