"""Traces of requests: files in the formats that are published, and how one is played as a tenant's arrivals."""
