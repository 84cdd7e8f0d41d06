"""The contract between schedulers and GPUs: commands, views, sessions, timelines, metrics."""
