"""Checkpoints: everything that the rest of a training depends on, taken between two rollouts.

Exact: a training that goes on from a checkpoint ends with the same weights, bit by bit, as one that was never
stopped (on the CPU, with one thread). Besides the model and its optimiser there are the episodes that were under way,
a replay buffer, every random number generator, and what callbacks and the logger have gathered.

All that is pickled, and to unpickle is to run whatever code the author of a file put there. So a checkpoint is signed
with a secret of the user who writes it, and read without further question only with the same signature.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pickle
import random
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.save_util import load_from_zip_file

from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.agents.training.files import new_folder
from gpusched_env.errors import InputError

KEPT = 2
"""Checkpoints that are kept: the last ones."""
MODEL, STATE, SIGNATURE = "model.zip", "state.pkl", "signature"
REPLAY_TABLES = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")

LOGGED = ("name_to_value", "name_to_count", "name_to_excluded")
"""What the logger has gathered and not written yet."""


class Checkpoints:
    """The checkpoints in a folder, one a number of timesteps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """Timesteps of the complete checkpoints, in order."""
        if not self.folder.is_dir():
            return []
        return sorted(int(found.name) for found in self.folder.iterdir() if found.name.isdigit())

    def save(self, model: BaseAlgorithm, extra: dict[str, Any]) -> None:
        """Write the state of ``model`` and of its environments, with ``extra`` (to be pickled).

        Call it at the start of a rollout.
        """

        def fill(folder: Path) -> None:
            model.save(folder / MODEL)
            with (folder / STATE).open("wb") as file:
                pickle.dump(_state(model, extra), file, protocol=pickle.HIGHEST_PROTOCOL)

        self.write(model.num_timesteps, fill)

    def write(self, timesteps: int, fill: Callable[[Path], None]) -> None:
        """Make a checkpoint whose folder ``fill`` fills, and drop all but the last ones.

        A kill while it writes leaves the checkpoints that were there.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{timesteps:012d}"
        if path.exists():
            return
        with new_folder(path) as partial:
            fill(partial)
            (partial / SIGNATURE).write_text(signature(partial) or "none")
        for step in self.steps()[:-KEPT]:
            shutil.rmtree(self.folder / f"{step:012d}")

    def last(self) -> Path:
        """The folder of the last checkpoint; there has to be one."""
        return self.folder / f"{self.steps()[-1]:012d}"

    def check_author(self) -> None:
        """Make sure that the last checkpoint, if there is one, was written by this user.

        Raises:
            InputError: it was not, or it cannot be told.
        """
        if not self.steps():
            return
        path = self.last()
        expected, found = signature(path), path / SIGNATURE
        if expected is None or not found.is_file() or not hmac.compare_digest(expected, found.read_text()):
            raise InputError(
                f"{path}: was not written, or not last changed, by you on this machine, and to go on from it is to run "
                "whatever code is in it. If you trust its author, say so: --trust (in Python trust=True)"
            )

    def restore(self, model: BaseAlgorithm) -> dict[str, Any]:
        """Bring a newly made ``model`` and its environments to the last checkpoint.

        ``model.learn(..., reset_num_timesteps=False)`` goes on from there.

        Returns:
            the ``extra`` of :meth:`save`.
        """
        path = self.last()
        data, parameters, variables = load_from_zip_file(path / MODEL, device=model.device)
        assert data is not None
        assert not variables
        # Spaces and schedules are those of the new model, which was made from the same configuration.
        made = {name for name, value in vars(model).items() if callable(value)} | {"observation_space", "action_space"}
        vars(model).update({name: value for name, value in data.items() if name not in made})
        model.set_parameters(parameters, exact_match=True, device=model.device)
        with (path / STATE).open("rb") as file:
            state: dict[str, Any] = pickle.load(file)
        return _set_state(model, state)


def signature(folder: Path) -> str | None:
    """Of the files in a checkpoint's folder, with the secret of this user; ``None`` where there is none."""
    key = _secret()
    if key is None:
        return None
    files = sorted(found for found in folder.iterdir() if found.name != SIGNATURE)
    digests = [f"{found.name} {hashlib.sha256(found.read_bytes()).hexdigest()}" for found in files]
    return hmac.new(key, "\n".join(digests).encode(), "sha256").hexdigest()


def _secret() -> bytes | None:
    """32 random bytes in ``gpusched/secret`` below the user's state folder, made at first use."""
    try:
        folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "gpusched"
        path = folder / "secret"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=folder) as new:
                new.write(secrets.token_bytes(32))
                new.flush()
                # Whole at once, and never in the place of one that another process has made meanwhile.
                with contextlib.suppress(FileExistsError):
                    os.link(new.name, path)
        return path.read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: there is no home.
        return None


def _state(model: BaseAlgorithm, extra: dict[str, Any]) -> dict[str, Any]:
    env = model.get_env()
    assert isinstance(env, Sb3VecEnv)
    return {
        "env": env.save_state(),
        "replay": _replay(model),
        "lstm": model._last_lstm_states if isinstance(model, RecurrentPPO) else None,
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002  # stable-baselines3 draws from it
        "torch": torch.get_rng_state(),
        "actions": model.action_space.np_random.bit_generator.state,
        "logged": {name: dict(getattr(model.logger, name)) for name in LOGGED},
        "extra": extra,
    }


def _set_state(model: BaseAlgorithm, state: dict[str, Any]) -> dict[str, Any]:
    env = model.get_env()
    assert isinstance(env, Sb3VecEnv)
    env.restore_state(state["env"])
    if state["replay"] is not None:
        _fill(model, state["replay"])
    if isinstance(model, RecurrentPPO):
        model._last_lstm_states = state["lstm"]
    for name, values in state["logged"].items():
        getattr(model.logger, name).update(values)
    model.action_space.np_random.bit_generator.state = state["actions"]
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    extra: dict[str, Any] = state["extra"]
    return extra


def _replay(model: BaseAlgorithm) -> dict[str, Any] | None:
    """The filled part of the replay buffer; ``None`` without one."""
    if not isinstance(model, OffPolicyAlgorithm):
        return None
    buffer = model.replay_buffer
    assert buffer is not None
    rows = buffer.buffer_size if buffer.full else buffer.pos
    tables = {}
    for name in REPLAY_TABLES:
        table = getattr(buffer, name)
        tables[name] = {k: v[:rows] for k, v in table.items()} if isinstance(table, dict) else table[:rows]
    return {"pos": buffer.pos, "full": buffer.full, "rows": rows, "tables": tables}


def _fill(model: BaseAlgorithm, replay: dict[str, Any]) -> None:
    assert isinstance(model, OffPolicyAlgorithm)
    buffer, rows = model.replay_buffer, replay["rows"]
    assert buffer is not None
    buffer.pos, buffer.full = replay["pos"], replay["full"]
    for name, saved in replay["tables"].items():
        table = getattr(buffer, name)
        if isinstance(saved, dict):
            for key, values in saved.items():
                table[key][:rows] = values
        else:
            table[:rows] = saved
