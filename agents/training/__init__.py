"""Training schedulers with stable-baselines3: configuration, checkpoints, validation, what TensorBoard shows."""
