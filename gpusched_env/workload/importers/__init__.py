"""Readers of profiler recordings and their conversion to workloads."""

from gpusched_env.workload.importers.recording import Selection
from gpusched_env.workload.importers.trace import WorkloadSummary, import_trace, summarise

__all__ = ["Selection", "WorkloadSummary", "import_trace", "summarise"]
