"""A fleet of GPUs: what its rate model is fitted to."""
