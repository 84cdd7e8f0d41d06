"""The learned dispatcher of a fleet: a rule of few weights, its file, and how it plays."""
