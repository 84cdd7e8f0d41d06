"""Which kernels a tenant's requests consist of, as a runtime learns it: from the first one that is over."""

from __future__ import annotations


class Requests:
    """The kernels of each tenant's first request, and where in a request it is."""

    def __init__(self, tenants: int) -> None:
        self._job: list[int | None] = [None] * tenants
        self._place = [0] * tenants
        self._first: list[list[int]] = [[] for _ in range(tenants)]
        self.known: list[tuple[int, ...] | None] = [None] * tenants
        """By tenant, identities of the kernels of its first request in order of launch, once a second one has begun."""

    def place(self, tenant: int, job: int, identity: int) -> int:
        """The place of a kernel that is launched next in its request; -1 if the first one had another kernel there."""
        if self._job[tenant] != job:
            if self._job[tenant] is not None and self.known[tenant] is None:
                self.known[tenant] = tuple(self._first[tenant])
            self._job[tenant], self._place[tenant] = job, 0
        place, self._place[tenant] = self._place[tenant], self._place[tenant] + 1
        known = self.known[tenant]
        if known is None:
            self._first[tenant].append(identity)
            return place
        return place if place < len(known) and known[place] == identity else -1
