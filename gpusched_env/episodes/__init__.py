"""From a scheduler and a problem to an episode, its metrics, frames and pictures."""
