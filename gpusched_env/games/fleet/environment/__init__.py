"""The Gymnasium face of a fleet: one decision a job that waits."""
