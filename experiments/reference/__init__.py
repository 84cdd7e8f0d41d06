"""Pages that the site is built with, from docstrings and scenario files, and the leaderboard from result files."""
