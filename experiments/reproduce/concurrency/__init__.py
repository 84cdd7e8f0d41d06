"""NVIDIA's own sharing mechanisms under deep-learning workloads, simulated again (Gilman and Walls, 2021)."""
