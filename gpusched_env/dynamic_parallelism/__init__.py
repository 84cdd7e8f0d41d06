"""The contract of schedulers that decide on child launches: what they see, what they say, what is recorded."""
