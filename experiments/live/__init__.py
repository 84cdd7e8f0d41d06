"""What simulation predicts of schedulers, held against a real GPU."""
