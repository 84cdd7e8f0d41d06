"""Task queues: applications whose workers take tasks from queues and put new ones there, and in which form."""
