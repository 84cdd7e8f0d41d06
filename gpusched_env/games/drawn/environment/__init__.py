"""The Gymnasium face of drawn scenarios."""
