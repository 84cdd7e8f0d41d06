"""An observation's tables as the slot networks read them: nothing depends on how many rows there are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from gpusched_env.agents.policies.sizes import OWNER
from gpusched_env.envs.encoding import COUNT_HALF
from gpusched_env.envs.features import DeviceFeature, TenantFeature


class Tables(NamedTuple):
    """A batch of observations of ``B`` states, ``S`` tenant slots and ``R`` running slots."""

    slots: Tensor
    """``(B, S, SLOT_FEATURES)``: of each tenant its rows of ``pending`` and ``tenants``, and the sum of its rows of
    ``running``."""
    common: Tensor
    """``(B, COMMON_FEATURES)``: ``device``, with ``LAUNCHABLE`` as a count, and the sum of all rows of ``running``."""
    present: Tensor
    """``(B, S)``, bool: whether there is a tenant in the slot."""
    kernels: Tensor
    """``(B, R, KERNEL_FEATURES)``: launched kernels."""
    owners: Tensor
    """``(B, S, R)``: 1 where the kernel of the running slot is the tenant's, else 0."""


class TablesExtractor(BaseFeaturesExtractor):
    """Brings an observation into the form of :class:`Tables`; it has no weights.

    Two columns depend on the number of tenant rows: ``running.TENANT``, which becomes :attr:`Tables.owners`, and
    ``device.LAUNCHABLE``, a share of the rows, which becomes the count ``n`` again, written as the other counts
    are: ``n / (n + 4)``.
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, features_dim=1)

    def forward(self, observations: dict[str, Tensor]) -> Tables:
        pending, tenants, running = (observations[name] for name in ("pending", "tenants", "running"))
        rows = pending.shape[1]
        owner = torch.round(running[..., OWNER] * rows)
        slots = torch.arange(1, rows + 1, dtype=owner.dtype, device=owner.device)
        owners = (owner.unsqueeze(1) == slots.unsqueeze(1)).to(owner.dtype)
        kernels = torch.cat((running[..., :OWNER], running[..., OWNER + 1 :]), dim=2)
        device = observations["device"].clone()
        launchable = device[:, DeviceFeature.LAUNCHABLE] * rows
        device[:, DeviceFeature.LAUNCHABLE] = launchable / (launchable + COUNT_HALF)
        return Tables(
            slots=torch.cat((pending, tenants, torch.bmm(owners, kernels)), dim=2),
            common=torch.cat((device, kernels.sum(dim=1)), dim=1),
            present=tenants[..., TenantFeature.PRESENT] > 0.5,
            kernels=kernels,
            owners=owners,
        )
