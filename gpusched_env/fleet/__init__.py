"""A fleet of GPUs under one clock: jobs from outside, which a dispatcher places and moves."""
