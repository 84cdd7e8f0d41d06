"""Who disturbs whom: a model of the speeds of jobs side by side, fitted to simulated pairs, judged on recorded ones."""
