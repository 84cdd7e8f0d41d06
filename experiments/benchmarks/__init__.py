"""Speed of the devices, as ratios measured side by side in one process."""
