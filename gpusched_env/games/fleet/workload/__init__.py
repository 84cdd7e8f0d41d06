"""Jobs of a fleet: ``jobs.py`` has the table and draws them, ``importing.py`` reads traces."""
