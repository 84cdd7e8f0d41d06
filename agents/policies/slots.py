"""The slot network: one token a pending slot, exchanged by attention, with heads that point at slots. Needs PyTorch."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from gpusched_env.agents.policies.sizes import (
    COMMON_FEATURES,
    KERNEL_FEATURES,
    OWNER,
    PENDING_OWNER,
    SLOT_FEATURES,
    SlotSizes,
)
from gpusched_env.envs.encoding import COUNT_HALF
from gpusched_env.envs.features import DeviceFeature, PendingFeature, TenantFeature


class ObservationTables(NamedTuple):
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
    """Brings an observation into the form of :class:`ObservationTables`; it has no weights.

    Some columns depend on the number of rows: ``pending.TENANT``, which the order of the slots says,
    ``running.TENANT``, which becomes :attr:`ObservationTables.owners`, and ``device.LAUNCHABLE``, a share of rows,
    which becomes the count ``n`` again, written as the other counts are: ``n / (n + 4)``.
    """

    def __init__(self, observation_space: spaces.Dict) -> None:
        super().__init__(observation_space, features_dim=1)

    def forward(self, observations: dict[str, Tensor]) -> ObservationTables:
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
        return ObservationTables(
            slots=torch.cat((own, of_tenants), dim=2),
            common=torch.cat((device, kernels.sum(dim=1)), dim=1),
            present=present & (first | (pending[..., PendingFeature.PRESENT] > 0.5)),
            kernels=kernels,
            owners=owners,
        )


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

    def forward(self, tables: ObservationTables) -> Tensor:
        """The tokens, shape ``(B, P, width)``."""
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

    def forward(self, tables: ObservationTables) -> Tensor:
        """The numbers of the actions, shape ``(B, actions)``."""
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

    def forward(self, tables: ObservationTables) -> Tensor:
        tokens = self.encoder(tables)
        return torch.relu(self.weigh(self.pool(tokens, tables.present)))


HEAD_GAIN = 0.01
"""Gain of the actions' layers: at first all actions are about equally likely."""


class SlotActorCritic(nn.Module):
    """Actor and critic in the place of stable-baselines3's ``MlpExtractor``."""

    def __init__(self, sizes: SlotSizes) -> None:
        super().__init__()
        self.actor = SlotActor(sizes)
        self.critic = SlotCritic(sizes)

    def forward(self, tables: ObservationTables) -> tuple[Tensor, Tensor]:
        return self.actor(tables), self.critic(tables)

    def forward_actor(self, tables: ObservationTables) -> Tensor:
        out: Tensor = self.actor(tables)
        return out

    def forward_critic(self, tables: ObservationTables) -> Tensor:
        out: Tensor = self.critic(tables)
        return out


def initialise(module: nn.Module, actor: SlotActor) -> None:
    """Orthogonal weights, small ones in the actions' layers."""
    module.apply(partial(ActorCriticPolicy.init_weights, gain=math.sqrt(2.0)))
    for head in actor.heads():
        ActorCriticPolicy.init_weights(head, gain=HEAD_GAIN)


def build(policy: Any, lr_schedule: Schedule) -> None:
    """What ``ActorCriticPolicy._build`` does, with the slot network."""
    sizes = SlotSizes(**policy.sizes)
    networks = SlotActorCritic(sizes)
    policy.mlp_extractor = networks
    policy.action_net = nn.Identity()
    policy.value_net = nn.Linear(sizes.width, 1)
    initialise(networks, networks.actor)
    ActorCriticPolicy.init_weights(policy.value_net, gain=1.0)
    policy.optimizer = policy.optimizer_class(policy.parameters(), lr=lr_schedule(1.0), **policy.optimizer_kwargs)


class SlotPolicy(MultiInputActorCriticPolicy):
    """The slot network as a policy of PPO and A2C."""

    def __init__(self, *args: Any, sizes: dict[str, Any], **kwargs: Any) -> None:
        """``sizes``: the fields of :class:`SlotSizes`; the rest is as for ``MultiInputPolicy``."""
        self.sizes = sizes
        super().__init__(*args, **{**kwargs, "features_extractor_class": TablesExtractor})

    def _build(self, lr_schedule: Schedule) -> None:
        build(self, lr_schedule)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "sizes": self.sizes}


class MaskableSlotPolicy(MaskableMultiInputActorCriticPolicy):
    """The slot network as a policy of MaskablePPO."""

    def __init__(self, *args: Any, sizes: dict[str, Any], **kwargs: Any) -> None:
        """``sizes``: the fields of :class:`SlotSizes`; the rest is as for ``MultiInputPolicy``."""
        self.sizes = sizes
        super().__init__(*args, **{**kwargs, "features_extractor_class": TablesExtractor})

    def _build(self, lr_schedule: Schedule) -> None:
        build(self, lr_schedule)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "sizes": self.sizes}


class SlotQNetwork(QNetwork):
    """The actor's numbers as the values of the actions."""

    def __init__(self, *args: Any, sizes: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sizes = sizes
        actor = SlotActor(SlotSizes(**sizes))
        initialise(actor, actor)
        self.q_net = nn.Sequential(actor)

    def forward(self, obs: PyTorchObs) -> Tensor:
        values: Tensor = self.q_net(self.extract_features(obs, self.features_extractor))
        return values


class SlotDqnPolicy(DQNPolicy):
    """The slot network as a policy of DQN."""

    def __init__(self, *args: Any, sizes: dict[str, Any], **kwargs: Any) -> None:
        """``sizes``: the fields of :class:`SlotSizes`; the rest is as for ``MultiInputPolicy``."""
        self.sizes = sizes
        super().__init__(*args, **{**kwargs, "features_extractor_class": TablesExtractor})

    def make_q_net(self) -> SlotQNetwork:
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return SlotQNetwork(**arguments, sizes=self.sizes).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "sizes": self.sizes}
