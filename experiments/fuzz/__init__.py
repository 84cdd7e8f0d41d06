"""Differential fuzzing: two devices run the same random episodes, and everything that can be seen is compared."""
