"""A fleet of GPUs: jobs come, and a dispatcher says which of them share a GPU."""
