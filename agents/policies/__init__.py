"""Policies for stable-baselines3: networks that fit the tables of an observation."""
