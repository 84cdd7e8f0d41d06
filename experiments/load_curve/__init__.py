"""One comparison repeated over a field of its scenario, mostly the load: what holds up to which load."""
