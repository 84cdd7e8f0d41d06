"""An observation's tables as the slot networks read them: nothing depends on how many rows there are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from gpusched_env.agents.policies.sizes import OWNER, PENDING_OWNER
from gpusched_env.envs.encoding import COUNT_HALF
from gpusched_env.envs.features import DeviceFeature, PendingFeature, TenantFeature


class Tables(NamedTuple):
    """A batch of observations of ``B`` states, ``S`` tenant slots, ``P`` pending slots (as many of each tenant, in
    order) and ``R`` running slots."""

    slots: Tensor
    """``(B, P, SLOT_FEATURES)``: of each pending slot its row of ``pending``, its tenant's row of ``tenants``, and the
    sum of its tenant's rows of ``running``."""
    common: Tensor
    """``(B, COMMON_FEATURES)``: ``device``, with ``LAUNCHABLE`` as a count, and the sum of all rows of ``running``."""
    present: Tensor
    """``(B, P)``, bool: whether a pending launch stands in the slot, or it is a tenant's first slot. Where decisions
    stand for an interval, tenants without a job take no part: they cannot go first."""
    kernels: Tensor
    """``(B, R, KERNEL_FEATURES)``: launched kernels."""
    owners: Tensor
    """``(B, S, R)``: 1 where the kernel of the running slot is the tenant's, else 0."""


class TablesExtractor(BaseFeaturesExtractor):
    """Brings an observation into the form of :class:`Tables`; it has no weights.

    Some columns depend on the number of rows: ``pending.TENANT``, which the order of the slots says,
    ``running.TENANT``, which becomes :attr:`Tables.owners`, and ``device.LAUNCHABLE``, a share of the rows, which
    becomes the count ``n`` again, written as the other counts are: ``n / (n + 4)``.
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, features_dim=1)

    def forward(self, observations: dict[str, Tensor]) -> Tables:
        pending, tenants, running = (observations[name] for name in ("pending", "tenants", "running"))
        rows = tenants.shape[1]
        lookahead = pending.shape[1] // rows
        owner = torch.round(running[..., OWNER] * rows)
        slots = torch.arange(1, rows + 1, dtype=owner.dtype, device=owner.device)
        owners = (owner.unsqueeze(1) == slots.unsqueeze(1)).to(owner.dtype)
        kernels = torch.cat((running[..., :OWNER], running[..., OWNER + 1 :]), dim=2)
        device = observations["device"].clone()
        launchable = device[:, DeviceFeature.LAUNCHABLE] * pending.shape[1]
        device[:, DeviceFeature.LAUNCHABLE] = launchable / (launchable + COUNT_HALF)
        of_tenants = torch.cat((tenants, torch.bmm(owners, kernels)), dim=2).repeat_interleave(lookahead, dim=1)
        first = torch.arange(pending.shape[1], device=pending.device) % lookahead == 0
        own = torch.cat((pending[..., :PENDING_OWNER], pending[..., PENDING_OWNER + 1 :]), dim=2)
        # Only with an interval the columns of plans are filled.
        idle = (tenants[..., TenantFeature.EARNS] > 0.0) & (tenants[..., TenantFeature.JOBS] == 0.0)
        present = ((tenants[..., TenantFeature.PRESENT] > 0.5) & ~idle).repeat_interleave(lookahead, dim=1)
        return Tables(
            slots=torch.cat((own, of_tenants), dim=2),
            common=torch.cat((device, kernels.sum(dim=1)), dim=1),
            present=present & (first | (pending[..., PendingFeature.PRESENT] > 0.5)),
            kernels=kernels,
            owners=owners,
        )
