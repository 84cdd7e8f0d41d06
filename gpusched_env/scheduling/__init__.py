"""The contract between schedulers and GPUs: commands, views, legality, devices, timelines, costs and rewards."""
