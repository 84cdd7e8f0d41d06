"""Urgent tenants and best-effort ones: how systems that protect one class from the other see a view."""

from __future__ import annotations

from gpusched_env.baselines.pending import ID, JOB, TENANT, launchable_kernels
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Launch
from gpusched_env.scheduling.view import RunningColumn, TenantColumn, View

Row = list[float]
RUNNING_PRIORITY = int(RunningColumn.PRIORITY)
JOBS_WAITING = int(TenantColumn.JOBS_WAITING)
JOBS_DONE = int(TenantColumn.JOBS_DONE)


def least_urgent(urgencies: list[int], classes: int) -> int:
    """The last of the ``classes`` (>= 1) most urgent of some urgencies (0 is the most urgent)."""
    return sorted(set(urgencies))[:classes][-1]


class TwoClasses:
    """The tenants of the scenario's highest priorities are urgent, all others best-effort.

    Also keeps which request of an urgent tenant is in service: from the launch of its first kernel to its
    completion, the gaps between its kernels included.
    """

    def __init__(self, knowledge: Knowledge, classes: int = 1) -> None:
        """``classes``: priorities, from the highest on, whose tenants are urgent (>= 1); each has a stream priority of
        its own, as far as the GPU has enough."""
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self._least_urgent = least_urgent(urgencies, classes)
        self.urgent = [urgency <= self._least_urgent for urgency in urgencies]
        """By tenant."""
        self.priorities = stream_priorities(urgencies, knowledge.gpu.priorities)
        """Stream priority of each tenant."""
        self._begun = [-1] * len(urgencies)
        """By tenant: the newest job of which a kernel was launched."""

    def launchable(self, view: View) -> tuple[list[Row], list[Row]]:
        """Rows of ``view.pending`` that may be launched now: of urgent tenants and of best-effort ones, each by
        priority, then age."""
        urgent: list[Row] = []
        best_effort: list[Row] = []
        for kernel in launchable_kernels(view):
            (urgent if self.urgent[int(kernel[TENANT])] else best_effort).append(kernel)
        return urgent, best_effort

    def running(self, view: View, *, urgent: bool) -> list[int]:
        """Rows of ``view.running`` of one class, in order of launch."""
        # Urgent tenants may have hundreds of kernels in flight, of which NumPy is the quicker one to find few others.
        is_urgent = view.running.array[:, RUNNING_PRIORITY] <= self._least_urgent
        rows: list[int] = (is_urgent if urgent else ~is_urgent).nonzero()[0].tolist()
        return rows

    def launch(self, kernel: Row) -> Launch:
        """The command that launches a pending kernel at its tenant's stream priority."""
        tenant = int(kernel[TENANT])
        self._begun[tenant] = max(self._begun[tenant], int(kernel[JOB]))
        return Launch(int(kernel[ID]), self.priorities[tenant])

    def in_service(self, view: View) -> bool:
        """Whether a request of an urgent tenant has begun and is not complete."""
        tenants = view.tenants.array
        columns = tenants[:, JOBS_WAITING].tolist(), tenants[:, JOBS_DONE].tolist()
        # Jobs of a tenant are numbered from 0 and begin in order.
        return any(
            urgent and waiting > 0 and begun >= done
            for urgent, begun, waiting, done in zip(self.urgent, self._begun, *columns, strict=True)
        )
