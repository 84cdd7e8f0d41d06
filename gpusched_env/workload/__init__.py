"""What wants to run: kernels, programs of host and device operations, jobs, tenants and arrivals."""
