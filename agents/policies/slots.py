"""The slot network as policies of stable-baselines3 and sb3-contrib."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from gpusched_env.agents.policies.sizes import SlotSizes
from gpusched_env.agents.policies.slot_network import SlotActor, SlotCritic
from gpusched_env.agents.policies.tables import Tables, TablesExtractor

HEAD_GAIN = 0.01
"""Gain of the actions' layers: at first all actions are about equally likely."""


class SlotActorCritic(nn.Module):
    """Actor and critic in the place of stable-baselines3's ``MlpExtractor``."""

    def __init__(self, sizes: SlotSizes) -> None:
        super().__init__()
        self.actor = SlotActor(sizes)
        self.critic = SlotCritic(sizes)

    def forward(self, tables: Tables) -> tuple[Tensor, Tensor]:
        return self.actor(tables), self.critic(tables)

    def forward_actor(self, tables: Tables) -> Tensor:
        out: Tensor = self.actor(tables)
        return out

    def forward_critic(self, tables: Tables) -> Tensor:
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
    """For PPO and A2C."""

    def __init__(self, *args: Any, sizes: dict[str, Any], **kwargs: Any) -> None:
        """``sizes``: the fields of :class:`SlotSizes`; the rest is as for ``MultiInputPolicy``."""
        self.sizes = sizes
        super().__init__(*args, **{**kwargs, "features_extractor_class": TablesExtractor})

    def _build(self, lr_schedule: Schedule) -> None:
        build(self, lr_schedule)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "sizes": self.sizes}


class MaskableSlotPolicy(MaskableMultiInputActorCriticPolicy):
    """For MaskablePPO."""

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
    """For DQN."""

    def __init__(self, *args: Any, sizes: dict[str, Any], **kwargs: Any) -> None:
        """``sizes``: the fields of :class:`SlotSizes`; the rest is as for ``MultiInputPolicy``."""
        self.sizes = sizes
        super().__init__(*args, **{**kwargs, "features_extractor_class": TablesExtractor})

    def make_q_net(self) -> SlotQNetwork:
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return SlotQNetwork(**arguments, sizes=self.sizes).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "sizes": self.sizes}
