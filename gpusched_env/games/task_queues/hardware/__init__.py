"""Laws and prices of queues of tasks, and of the links between GPUs that share one application."""
