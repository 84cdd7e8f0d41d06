"""Readers of profiler recordings and their conversion to workloads."""

from gpusched_env.workload.importers.kineto import import_kineto
from gpusched_env.workload.importers.summary import WorkloadSummary, summarise

__all__ = ["WorkloadSummary", "import_kineto", "summarise"]
