"""Reproductions: what was recorded or published, simulated again and compared figure by figure."""
