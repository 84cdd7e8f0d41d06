"""What lies in the folder of a training."""

from __future__ import annotations

from pathlib import Path

from gpusched_env.errors import InputError

CONFIG = "config.yaml"
BEST, EXPORTED, FINAL = "best.zip", "best.npz", "final.zip"
VALIDATION, RESULT = "validation.json", "result.json"
BOARD, CHECKPOINTS = "tensorboard", "checkpoints"
MADE = (CONFIG, BEST, EXPORTED, FINAL, VALIDATION, RESULT, BOARD, CHECKPOINTS)
"""All of it."""


def policy_file(path: Path) -> Path:
    """The file of a trained policy: ``path`` itself, or the best one in the folder of a training.

    Raises:
        InputError: there is none.
    """
    if path.is_dir():
        for name in (EXPORTED, BEST):
            if (path / name).is_file():
                return path / name
        raise InputError(f"{path}: is not the folder of a training, it has no {EXPORTED} or {BEST}")
    if not path.is_file():
        raise InputError(f"{path}: no such file; name a folder of gpusched train, or a .npz or .zip in it")
    return path
