"""Readers of profiler recordings and their conversion to workloads."""

from gpusched_env.workload.importers.selection import Selection
from gpusched_env.workload.importers.summary import WorkloadSummary, summarise
from gpusched_env.workload.importers.trace import import_trace

__all__ = ["Selection", "WorkloadSummary", "import_trace", "summarise"]
