"""Rankings of schedulers on splits of drawn scenarios, their tuning, a selector, and the page."""
