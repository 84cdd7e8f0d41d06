"""A training that begins with the weights of a trained policy."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import load_from_zip_file

from gpusched_env.agents.policies.slots import SlotActorCritic
from gpusched_env.agents.policy_file import read_members
from gpusched_env.errors import InputError
from gpusched_env.reading import ARCHIVE_ERRORS, check_unzipped, opened


def begin_with(model: BaseAlgorithm, path: Path) -> None:
    """Give a newly made model the weights in a file; its optimiser stays untouched. Nothing is unpickled.

    Args:
        model: with the policy ``slots``, where ``path`` is an exported one.
        path: a ``.zip`` that a model of the same kind was saved in, or the ``.npz`` of an exported slot network, which
            has no critic.

    Raises:
        InputError: no such file, or one with other weights than the model's.
    """
    if path.suffix == ".npz":
        _take(_actor(model, path), {name: torch.as_tensor(array) for name, array in _arrays(path).items()}, path)
        return
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            check_unzipped(archive, path.stat().st_size, str(path))
        _, parameters, _ = load_from_zip_file(path, load_data=False, device="cpu")
    except ARCHIVE_ERRORS as error:
        raise InputError(f"{path}: no model of stable-baselines3 ({error})") from error
    weights: Any = parameters.get("policy", {})
    _take(model.policy, weights, path)


def _arrays(path: Path) -> dict[str, Any]:
    return {name: array for name, array in read_members(path).items() if name != "metadata"}


def _actor(model: BaseAlgorithm, path: Path) -> torch.nn.Module:
    networks = getattr(model.policy, "mlp_extractor", None)
    if not isinstance(networks, SlotActorCritic):
        raise InputError(f"{path}: an exported policy; only trainings with policy slots can begin with one")
    return networks.actor


def _take(module: torch.nn.Module, weights: dict[str, Any], path: Path) -> None:
    """Load all weights of a module.

    Raises:
        InputError: names the first one that is missing, has no place, or has another shape.
    """
    mine = module.state_dict()
    for name in [*mine, *weights]:
        if name not in weights or name not in mine:
            where = "is missing" if name not in weights else "has no place in this policy"
            raise InputError(f"{path}: {name} {where}: it was trained with another policy, or other actions")
        if mine[name].shape != weights[name].shape:
            raise InputError(
                f"{path}: {name} has shape {tuple(weights[name].shape)}, this policy's {tuple(mine[name].shape)}: "
                "it was trained with other actions or observations"
            )
    module.load_state_dict(weights)
