"""Which scheduler is best: costs over seeds and workload variants, ranks with intervals, as a page."""
