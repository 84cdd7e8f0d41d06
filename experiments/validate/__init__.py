"""How well the simulator predicts recordings of a real GPU."""
