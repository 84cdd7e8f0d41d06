"""Workloads that may take the place of a scenario's own: some to train on, others held out for evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpusched_env.reading import Duration, Time
from gpusched_env.workload.cores.spec import CpuCores, Process
from gpusched_env.workload.serving import Batching
from gpusched_env.workload.tenant import ArrivalProcess, Tenant

SetName = Literal["train", "held_out"]


class Substitute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another workload of a tenant, and what has to change with it; other fields of the tenant stay."""

    workload: str
    arrivals: ArrivalProcess | UnsetType = UNSET
    jobs: Annotated[int, Meta(ge=1)] | UnsetType | None = UNSET
    weight: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    slo_us: Duration | UnsetType | None = UNSET
    launch: Literal["eager", "graph"] | UnsetType = UNSET
    iteration_us: Duration | UnsetType | None = UNSET
    host_us: Time | UnsetType | None = UNSET
    memory_bytes: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    batching: Batching | UnsetType | None = UNSET
    neighbours: tuple[tuple[Process, ...], ...] | UnsetType = UNSET
    """Processes of the CPU cores that run no tenant's host, core by core."""


Variant = dict[str, Substitute]
"""What replaces what of each tenant, by name; others stay as the scenario has them. Empty: the scenario itself."""


class WorkloadSets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two sets of variants of a scenario, for training (domain randomisation) and for evaluation."""

    train: Annotated[tuple[Variant, ...], Meta(min_length=1)]
    held_out: Annotated[tuple[Variant, ...], Meta(min_length=1)]
    """Variants for evaluation: each has at least one workload that no variant of ``train`` has for any tenant."""

    def __hash__(self) -> int:
        # Scenarios are keys of caches; a variant is a mapping, which has no hash of its own.
        return hash(msgspec.json.encode(self))


def problem_with_sets(sets: WorkloadSets, tenants: Sequence[Tenant], cores: CpuCores | None) -> str | None:
    """What is wrong with ``sets`` for a scenario of these tenants and cores, with its place; ``None``: nothing is."""
    free = 0 if cores is None else sum(core.host is None for core in cores.cores)
    own = {tenant.name: tenant.workload for tenant in tenants}
    trained: set[str] = set()
    for which, variants in (("train", sets.train), ("held_out", sets.held_out)):
        seen: list[Variant] = []
        for i, variant in enumerate(variants):
            where = f"workload_sets.{which}[{i}]"
            unknown = [name for name in variant if name not in own]
            if unknown:
                return f"{where} names tenant {unknown[0]!r}; tenants are {', '.join(own)}"
            for name, new in variant.items():
                if new.neighbours is not UNSET and len(new.neighbours) != free:
                    return f"{where}.{name}: neighbours of {len(new.neighbours)} cores; {free} run no tenant's host"
            if variant in seen:
                return f"{where} is the same as workload_sets.{which}[{seen.index(variant)}]"
            seen.append(variant)
            workloads = workloads_of(variant, own)
            if which == "train":
                trained |= workloads
            elif workloads <= trained:
                return f"{where} has only workloads of the training set; a held-out variant needs a new one"
    return None


def workloads_of(variant: Mapping[str, Substitute], own: Mapping[str, str]) -> set[str]:
    """Workloads of all tenants in a variant; ``own`` are the scenario's, by tenant."""
    return {variant[name].workload if name in variant else workload for name, workload in own.items()}
