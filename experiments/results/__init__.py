"""How good trained agents are: their learning curves, and their rankings beside hand-written schedulers, as a page."""
