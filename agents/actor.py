"""What compiled code decides with, as records of arrays."""

from __future__ import annotations

from typing import NamedTuple

from gpusched_env.agents.network import Ints, Singles
from gpusched_env.envs.batch_state import Tables
from gpusched_env.envs.encoding import Bools, Floats


class Actor(NamedTuple):
    """An exported policy, and what one thread works in."""

    sizes: Ints
    """As :mod:`gpusched_env.agents.network` has them."""
    weights: Singles
    masked: bool
    """Whether only legal actions compete; otherwise an illegal one that wins is a wait, as in training."""
    scratch: Singles
    """As many as :func:`~gpusched_env.agents.network.scratch_size` says."""


class Slots(NamedTuple):
    """What the slots of a View's actions are, and what they show of it."""

    lookahead: int
    """Pending slots of a tenant."""
    slices: Ints
    """``rows`` of a :class:`~gpusched_env.envs.numbering.Plan`."""
    choices: Ints
    pending: Floats
    """Written: as :func:`~gpusched_env.envs.encoding.gather_pending` does."""
    running: Floats
    """Written: as :func:`~gpusched_env.envs.encoding.gather_running` does, which works in :attr:`seen`."""
    seen: Bools
    tiles: Floats
    """For :func:`~gpusched_env.envs.tiles.encode_gains`; empty where no tiles can be synchronised."""


class Workspace(NamedTuple):
    """All that an actor decides on Views with."""

    actor: Actor
    slots: Slots
    scalars: Floats
    """Of the View, ``(len(Scalar),)``."""
    tables: Tables
    """Written: the observation."""
    legal: Bools
    """Written, ``(actions,)``."""
    numbers: Singles
    """Written, ``(actions,)``."""
