"""Jobs of a fleet: ``jobs.py`` has the table, ``generated.py`` draws them, ``importing.py`` reads traces."""
