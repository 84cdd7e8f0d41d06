"""A benchmark that others can enter: a protocol as data, what is checked of a submission, and its row."""
