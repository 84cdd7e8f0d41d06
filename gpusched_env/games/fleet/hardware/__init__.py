"""Laws of jobs that share one GPU of a fleet."""
