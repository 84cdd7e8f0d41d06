"""What a training is: everything that its result depends on, as a file beside the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gpusched_env.agents.policies.registry import policy_names
from gpusched_env.agents.training.randomise import Randomise
from gpusched_env.agents.training.settings import SETTINGS, settings_of
from gpusched_env.envs.observations import RUNNING_SLOTS
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.scenario import Scenario

Count = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0, lt=2**31)]


class Imitation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A warm start: first do as a hand-written scheduler does."""

    scheduler: str
    episodes: Count = 12
    """Recorded episodes of the teacher, over all training variants."""
    decisions: Count = 120_000
    """Of these episodes, how many to keep at most."""
    epochs: Count = 5
    """Passes over what was recorded."""
    batch_size: Count = 1024
    learning_rate: Annotated[float, Meta(gt=0)] = 1e-3


class TrainingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One training, from the first step to the last."""

    scenario: Scenario
    algo: str = "maskable-ppo"
    policy: str | None = None
    """``None``: the usual one of the algorithm."""
    timesteps: Count = 1_000_000
    """Decisions, of all environments together; the last rollout is completed."""
    seed: Seed = 0
    envs: Count = 64
    threads: Count = 1
    """Of PyTorch and of the vector environment. A training is repeated exactly with one only."""
    settings: dict[str, Any] = {}
    """Hyper-parameters of the algorithm (:mod:`gpusched_env.agents.training.settings`)."""
    policy_kwargs: dict[str, Any] = {}
    """Arguments of the policy in place of those that its name stands for, such as ``net_arch``."""
    variants: bool = True
    """Draw one of the scenario's training variants for each episode, where it has them."""
    randomise: Randomise = Randomise()
    """What else each episode of the training draws; validations do not."""
    slots: Count | None = None
    """Tenant rows; ``None``: as many as the scenario has tenants."""
    running_slots: Count = RUNNING_SLOTS
    wait_us: Annotated[float, Meta(gt=0)] = 100.0
    """Longest wait of action 0."""
    shaping: bool = True
    """Whether rewards are shaped by progress (:mod:`gpusched_env.agents.shaping`)."""
    reward_scale: Annotated[float, Meta(gt=0)] | None = None
    """Factor on rewards; ``None``: :func:`gpusched_env.agents.training.scale.reward_scale` of the scenario."""
    imitation: Imitation | None = None
    validate_every: Count = 250_000
    """Decisions between two validations."""
    validation_seeds: Count = 4
    """Episodes of each training variant in a validation."""
    checkpoint_every: Count = 100_000
    """Decisions between two checkpoints."""
    torch_device: str = "cpu"

    def checked(self) -> TrainingConfig:
        """This configuration with all hyper-parameters filled in.

        Raises:
            InputError: a value that it cannot have.
        """
        try:
            valid = msgspec.convert(msgspec.to_builtins(self), TrainingConfig)
        except msgspec.ValidationError as error:
            raise InputError(f"training: {error}") from error
        policies = policy_names(valid.algo)
        policy = policies[0] if valid.policy is None else valid.policy
        if policy not in policies:
            raise InputError(f"algorithm {valid.algo} has no policy {policy!r}; it has {' and '.join(policies)}")
        settings = msgspec.to_builtins(settings_of(valid.algo, valid.settings))
        return msgspec.structs.replace(valid, policy=policy, settings=settings)


def config_of(values: dict[str, Any]) -> TrainingConfig:
    """A configuration from plain values.

    Hyper-parameters of the algorithm may stand beside the other fields, by name; ``imitation.FIELD`` and
    ``policy_kwargs.FIELD`` reach into those.

    Raises:
        InputError: unknown name or invalid value.
    """
    plain: dict[str, Any] = {"settings": {}, "policy_kwargs": {}}
    algo = str(values.get("algo", "maskable-ppo"))
    known = SETTINGS[algo].__struct_fields__ if algo in SETTINGS else ()
    for name, value in values.items():
        group, dot, field = name.partition(".")
        if dot and group in ("imitation", "policy_kwargs"):
            if group == "imitation" and not isinstance(plain.get(group), dict):
                raise InputError(f"{name}: there is no imitation; name its scheduler first (--imitate SCHEDULER)")
            plain[group][field] = value
        elif name in TrainingConfig.__struct_fields__:
            plain[name] = msgspec.to_builtins(value)
        elif name in known:
            plain["settings"][name] = value
        else:
            names = [*TrainingConfig.__struct_fields__, *known]
            raise InputError(f"training with {algo} has no setting {name!r}; {did_you_mean(name, names)}")
    try:
        return msgspec.convert(plain, TrainingConfig).checked()
    except msgspec.ValidationError as error:
        raise InputError(f"training: {error}") from error


def write_config(config: TrainingConfig, provenance: dict[str, Any], path: Path) -> None:
    """Write ``config.yaml``: the configuration, and what it ran with (versions, command line)."""
    import yaml

    content = {"training": msgspec.to_builtins(config), "provenance": provenance}
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(yaml.safe_dump(content, sort_keys=False))
    partial.replace(path)


def read_config(path: Path) -> TrainingConfig:
    """The configuration in a ``config.yaml``.

    Raises:
        InputError: the file cannot be read, or is not one.
    """
    return _read(path).training


def read_provenance(path: Path) -> tuple[str, dict[str, str]]:
    """The command of a ``config.yaml`` and the versions that it ran with; empty where they were not noted.

    Raises:
        InputError: the file cannot be read, or is not one.
    """
    noted = _read(path).provenance
    return noted.command, noted.versions


class _Provenance(msgspec.Struct):
    command: str = ""
    versions: dict[str, str] = {}


class _File(msgspec.Struct):
    training: TrainingConfig
    provenance: _Provenance


def _read(path: Path) -> _File:
    import yaml

    try:
        return msgspec.convert(yaml.safe_load(path.read_text()), _File)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise InputError(f"{path}: not the configuration of a training ({error})") from error


def differences(stored: TrainingConfig, given: TrainingConfig) -> list[str]:
    """Names of the fields in which two trainings differ."""
    return [name for name in TrainingConfig.__struct_fields__ if getattr(stored, name) != getattr(given, name)]
