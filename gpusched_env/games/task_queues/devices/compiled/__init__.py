"""The compiled device of task queues: flat tables, and polls that are worked out when they matter."""
