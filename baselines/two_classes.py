"""Urgent tenants and best-effort ones: how systems that protect one class from the other see a view."""

from __future__ import annotations

from gpusched_env.baselines.pending import ID, JOB, TENANT, launchable_rows
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Launch
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

PRIORITY = int(PendingColumn.PRIORITY)
RUNNING_TENANT = int(RunningColumn.TENANT)
JOBS_WAITING = int(TenantColumn.JOBS_WAITING)
JOBS_DONE = int(TenantColumn.JOBS_DONE)


class TwoClasses:
    """The tenants of the scenario's highest priority are urgent, all others best-effort.

    Also keeps which request of an urgent tenant is in service: from the launch of its first kernel to its
    completion, the gaps between its kernels included.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self.urgent = [urgency == min(urgencies) for urgency in urgencies]
        """By tenant."""
        self.priorities = stream_priorities(urgencies, knowledge.gpu.priorities)
        """Stream priority of each tenant."""
        self._begun = [-1] * len(urgencies)
        """By tenant: the last job of which a kernel was launched."""

    def urgent_row(self, view: View) -> int | None:
        """Row of the oldest launchable kernel of an urgent tenant; ``None`` without one."""
        table = view.pending.array
        rows = (row for row in launchable_rows(view) if self.urgent[int(table[row, TENANT])])
        return min(rows, key=lambda row: float(table[row, ID]), default=None)

    def best_effort_rows(self, view: View) -> list[int]:
        """Rows of the launchable kernels of best-effort tenants, by priority, then age."""
        table = view.pending.array
        rows = [row for row in launchable_rows(view) if not self.urgent[int(table[row, TENANT])]]
        return sorted(rows, key=lambda row: (float(table[row, PRIORITY]), float(table[row, ID])))

    def running(self, view: View, *, urgent: bool) -> list[int]:
        """Rows of ``view.running`` of one class, in order of launch."""
        tenants = view.running.array[:, RUNNING_TENANT].tolist()
        return [row for row, tenant in enumerate(tenants) if self.urgent[int(tenant)] is urgent]

    def launch(self, view: View, row: int) -> Launch:
        """The command that launches a pending kernel at its tenant's stream priority."""
        kernel = view.pending.array[row]
        tenant = int(kernel[TENANT])
        self._begun[tenant] = int(kernel[JOB])
        return Launch(int(kernel[ID]), self.priorities[tenant])

    def in_service(self, view: View) -> bool:
        """Whether a request of an urgent tenant has begun and is not complete."""
        rows = view.tenants.array.tolist()
        # Jobs of a tenant are numbered from 0 and complete in order.
        return any(
            urgent and row[JOBS_WAITING] > 0 and begun >= row[JOBS_DONE]
            for urgent, row, begun in zip(self.urgent, rows, self._begun, strict=True)
        )
