"""The Gymnasium face of dynamic parallelism: one decision a launch request."""
