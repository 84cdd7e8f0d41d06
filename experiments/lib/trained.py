"""Trained agents by name: ``learned`` is what is shipped for the scenario, ``learned:PATH`` what is in a file or in
the folder of a training.

Options may follow, as for other schedulers. ``learned(interval_us=500)``: its decisions stand for another time than in
its training (:class:`gpusched_env.agents.learned.LearnedScheduler`). ``learned:FILE.zip(trust=true)``: the code in a
file of stable-baselines3 may run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from gpusched_env.baselines.spec import parse_spec, with_options
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from gpusched_env.agents.learned import LearnedScheduler
    from gpusched_env.agents.model_scheduler import ModelScheduler

LEARNED = "learned"
"""The shipped agent; with a colon and a path behind it, the agent of a file."""
TRUST = "(trust=true)"
"""Behind the path of a ``.zip`` whose code may run."""


def is_learned(source: Any) -> TypeGuard[str]:
    """Whether a scheduler's name is that of a trained agent."""
    return isinstance(source, str) and (source == LEARNED or source.startswith((f"{LEARNED}:", f"{LEARNED}(")))


def path_and_options(source: str) -> tuple[str, dict[str, str]]:
    """The path that a trained agent's name has, if any, and its options as text.

    Raises:
        InputError: what is in the parentheses are no options.
    """
    path = source.removeprefix(LEARNED).removeprefix(":")
    # A path may have parentheses itself.
    if not path.endswith(")") or (source.startswith(f"{LEARNED}:") and Path(path).exists()):
        return path, {}
    path, _, inside = path.rpartition("(")
    return path, parse_spec(f"{LEARNED}({inside}")[1]


def learned_file(source: str) -> Path | None:
    """The file of the trained agent that ``learned:PATH`` names, in a training's folder the best; ``learned``: none.

    Raises:
        InputError: there is no path, or nothing there.
    """
    from gpusched_env.agents.training.folder import policy_file

    path, _ = path_and_options(source)
    if ":" in source and not path:
        raise InputError(
            f"scheduler {source!r}: expected {LEARNED}:PATH, a trained policy's file or a training's folder"
        )
    return policy_file(Path(path)) if path else None


def agent_file(source: str) -> Path | None:
    """The same of an agent that has no options.

    Raises:
        InputError: as :func:`learned_file`; there are options.
    """
    _, options = path_and_options(source)
    if options:
        raise InputError(f"scheduler {source!r} has no option {next(iter(options))!r}; it has no options")
    return learned_file(source)


def trusted(sources: Sequence[str]) -> list[str]:
    """Schedulers by name, trained ones in a ``.zip`` with leave to run the code that is in it."""
    return [
        f"{source.removesuffix(TRUST)}{TRUST}"
        if is_learned(source) and (learned_file(source) or Path()).suffix == ".zip"
        else source
        for source in sources
    ]


def trained(source: str) -> LearnedScheduler | ModelScheduler:
    """The scheduler that ``learned`` or ``learned:PATH`` names.

    Raises:
        InputError: there is no such file, or the agent lacks an option or cannot have its value.
    """
    file, (path, options) = learned_file(source), path_and_options(source)

    def model(trust: bool = False) -> Any:
        from gpusched_env.agents.model_scheduler import ModelScheduler

        return ModelScheduler(file or Path(), trust=trust)

    def policy(interval_us: float | None = None, decision_us: float = 0.0) -> Any:
        from gpusched_env.agents.learned import LearnedScheduler

        return LearnedScheduler(file, interval_us=interval_us, decision_us=decision_us)

    name = f"{LEARNED}:{path}" if path else LEARNED
    found: LearnedScheduler | ModelScheduler
    found = with_options(model if file is not None and file.suffix == ".zip" else policy, name, dict(options))
    return found
