"""The same network to be trained, in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpusched_env.envs.features import TenantFeature
from gpusched_env.games.drawn.agent.network import HIDDEN, SHAPES, TENANT_WIDTH, Weights
from gpusched_env.games.drawn.agent.seeing import OTHERS, REPERTOIRE, TENANTS


class RuleNetwork(nn.Module):
    """:func:`~gpusched_env.games.drawn.agent.network.numbers_of` of many rows."""

    def __init__(self) -> None:
        super().__init__()
        self.tenant = nn.Sequential(
            nn.Linear(len(TenantFeature), TENANT_WIDTH), nn.ReLU(), nn.Linear(TENANT_WIDTH, TENANT_WIDTH), nn.ReLU()
        )
        self.all = nn.Sequential(
            nn.Linear(2 * TENANT_WIDTH + OTHERS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, len(REPERTOIRE))
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Numbers by rule, shape ``(rows, choices)``; ``rows``: ``(rows, WIDTH)``."""
        tenants = rows[:, :TENANTS].reshape(len(rows), -1, len(TenantFeature))
        there = (tenants[..., TenantFeature.PRESENT] > 0.0).float()[..., None]
        each = self.tenant(tenants) * there
        mean = each.sum(1) / there.sum(1).clamp(min=1.0)
        numbers: Tensor = self.all(torch.cat((mean, each.amax(1), rows[:, TENANTS:]), 1))
        return numbers

    def export(self) -> Weights:
        """Weights for decisions."""
        own = self.state_dict()
        return {name: own[name].detach().numpy().copy() for name in SHAPES}
