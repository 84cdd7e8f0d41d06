"""What a fleet does between two reports, compiled."""
