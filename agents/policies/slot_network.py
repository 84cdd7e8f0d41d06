"""The slot network: one token a pending slot, exchanged by attention, with heads that point at slots.

A tenant's first token, there whether or not a launch is pending, also stands for the tenant itself. The weights do not
depend on the number of slots or the look-ahead, and tenants have no positions: tenants that change places change
places in the output. Schedulers that point at one of any number of jobs are those of H. Mao et al. (SIGCOMM 2019) and
of W. Kool, H. van Hoof and M. Welling (*Attention, learn to solve routing problems!*, ICLR 2019). Attention here has
learnt queries instead of pairs of tokens (J. Lee et al., *Set Transformer*, ICML 2019), so that its cost grows with
the number of tokens and not with its square.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpusched_env.agents.policies.sizes import COMMON_FEATURES, KERNEL_FEATURES, SLOT_FEATURES, SlotSizes
from gpusched_env.agents.policies.tables import Tables

FAR = -1e9
"""Attention score of an empty slot."""
OPTIONAL = ("preempt", "partition", "reject", "reshape", "synchronise")
"""Heads that only some networks have."""


class SlotEncoder(nn.Module):
    """A token for each pending slot.

    It is made of the slot's and its tenant's own rows and of what is common to all, the device and the launched
    kernels, from which the kernels of other tenants follow.
    """

    def __init__(self, sizes: SlotSizes) -> None:
        super().__init__()
        self.slots = nn.Linear(SLOT_FEATURES, sizes.width)
        self.common = nn.Linear(COMMON_FEATURES, sizes.width, bias=False)

    def forward(self, tables: Tables) -> Tensor:
        """Shape ``(B, P, width)``."""
        return torch.relu(self.slots(tables.slots) + self.common(tables.common).unsqueeze(1))


class SlotPool(nn.Module):
    """Multi-head attention of learnt queries over the tokens present: a summary of any number of tokens."""

    def __init__(self, sizes: SlotSizes) -> None:
        super().__init__()
        self.queries = nn.Linear(sizes.width, sizes.heads, bias=False)

    def forward(self, tokens: Tensor, present: Tensor) -> Tensor:
        """Shape ``(B, heads * width)``: of each head the mean of the tokens, weighted by its attention; 0 of none."""
        scores = self.queries(tokens).masked_fill(~present.unsqueeze(2), FAR)
        weights = torch.softmax(scores.transpose(1, 2), dim=2) * present.any(dim=1)[:, None, None]
        return torch.bmm(weights, tokens).flatten(1)


class SlotActor(nn.Module):
    """One number an action, in the order of :class:`~gpusched_env.envs.actions.ActionLayout`."""

    def __init__(self, sizes: SlotSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.encoder = SlotEncoder(sizes)
        self.pool = SlotPool(sizes)
        self.tell = nn.Linear(sizes.heads * sizes.width, sizes.width, bias=False)
        self.mix = nn.Linear(sizes.width, sizes.width)
        self.weigh = nn.Linear(sizes.heads * sizes.width, sizes.width)
        self.wait = nn.Linear(sizes.width, 1)
        self.launch = nn.Linear(sizes.width, sizes.launches)
        if sizes.modes:
            self.join = nn.Linear(KERNEL_FEATURES + sizes.width, sizes.width)
            self.preempt = nn.Linear(sizes.width, sizes.modes)
        if sizes.quarters:
            self.partition = nn.Linear(sizes.width, sizes.quarters)
        if sizes.rejections:
            self.reject = nn.Linear(sizes.width, sizes.rejections)
        if sizes.forms:
            self.reshape = nn.Linear(sizes.width, sizes.forms)
        if sizes.synchronisations:
            self.synchronise = nn.Linear(sizes.width, sizes.synchronisations)

    def heads(self) -> list[nn.Linear]:
        """The layers whose outputs are actions' numbers."""
        optional = [getattr(self, name) for name in OPTIONAL if hasattr(self, name)]
        return [self.wait, self.launch, *optional]

    def forward(self, tables: Tables) -> Tensor:
        """Shape ``(B, actions)``."""
        tokens = self.encoder(tables)
        pooled = self.pool(tokens, tables.present)
        tokens = tokens + torch.relu(self.mix(tokens) + self.tell(pooled).unsqueeze(1))
        parts = [self.wait(torch.relu(self.weigh(pooled))), self.launch(tokens).flatten(1)]
        # A tenant's first token stands for the tenant.
        tenants = tokens[:, :: tokens.shape[1] // tables.owners.shape[1]]
        if self.sizes.modes:
            owners = torch.bmm(tables.owners.transpose(1, 2), tenants)
            joined = torch.relu(self.join(torch.cat((tables.kernels, owners), dim=2)))
            parts.append(self.preempt(joined).flatten(1))
        if self.sizes.quarters:
            parts.append(self.partition(tenants).flatten(1))
        if self.sizes.rejections:
            parts.append(self.reject(tenants).flatten(1))
        if self.sizes.forms:
            parts.append(self.reshape(tokens).flatten(1))
        if self.sizes.synchronisations:
            parts.append(self.synchronise(tokens).flatten(1))
        return torch.cat(parts, dim=1)


class SlotCritic(nn.Module):
    """What the value is a linear function of, shape ``(B, width)``; shares no weights with the actor."""

    def __init__(self, sizes: SlotSizes) -> None:
        super().__init__()
        self.encoder = SlotEncoder(sizes)
        self.pool = SlotPool(sizes)
        self.weigh = nn.Linear(sizes.heads * sizes.width, sizes.width)

    def forward(self, tables: Tables) -> Tensor:
        tokens = self.encoder(tables)
        return torch.relu(self.weigh(self.pool(tokens, tables.present)))
