"""Trained agents by name, and how schedulers are named where results are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from gpusched_env.baselines.registered import parse_spec, with_options
from gpusched_env.baselines.tuning import PREFIX
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from gpusched_env.agents.learned import LearnedScheduler
    from gpusched_env.agents.model_scheduler import ModelScheduler


LEARNED = "learned"
"""The shipped agent; with a colon and a path behind it, the agent of a file."""
TRUST = "(trust=true)"
"""The mark behind the path of a ``.zip`` whose code may run."""


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


MARK = "*"
LEGEND = (
    f"{MARK} clairvoyant: is told the truth that no scheduler can know: a reference, and no strict bound, as none of "
    "them is optimal."
)


def labels(names: Iterable[str], clairvoyant: Collection[str] = ()) -> dict[str, str]:
    """A label for each scheduler.

    Of a path, the last part is shown (of a training's best policy: the training's folder), and as many before it as
    tell schedulers apart: ``learned:results/a/best.npz`` and ``learned:results/b`` are ``learned:a`` and ``learned:b``.
    A folder that is called ``learned`` itself is shown with the one that it is in.

    Args:
        names: as they were asked for, all different.
        clairvoyant: those that are told the truth.
    """
    names = list(names)
    depth = dict.fromkeys(names, 1)
    for _ in range(max((name.count("/") for name in names), default=0)):
        shown = [_shortened(name, depth[name]) for name in names]
        for name, label in zip(names, shown, strict=True):
            depth[name] += shown.count(label) > 1
    found = {name: _shortened(name, depth[name]) for name in names}
    alike = list(found.values())
    return {
        name: (label if alike.count(label) == 1 else name) + (MARK if name in clairvoyant else "")
        for name, label in found.items()
    }


def legend(names: Iterable[str], clairvoyant: Collection[str]) -> str:
    """What the mark means; empty if none of ``names`` has it."""
    return LEGEND if any(name in clairvoyant for name in names) else ""


def _shortened(name: str, depth: int) -> str:
    """A scheduler's name with so many parts of the path in it, if there is one."""
    if name.startswith(f"{LEARNED}:"):
        from gpusched_env.agents.training.folder import BEST, EXPORTED

        parts = Path(name.removeprefix(f"{LEARNED}:").removesuffix(TRUST)).parts
        parts = parts[:-1] if len(parts) > 1 and parts[-1] in (EXPORTED, BEST) else parts
        shown = parts[-depth:] if parts[-depth:] != (LEARNED,) else (".", *parts)[-2:]
        return f"{LEARNED}:{'/'.join(shown)}"
    path, suffix, rest = name.partition(".py:")
    return "/".join(Path(path).parts[-depth:]) + suffix + rest if suffix else name


PUBLISHED: Final = frozenset(
    [
        *("orion", "reef", "tally", "xsched", "lithos", "fikit", "clockwork"),
        *("nexus", "paella", "tgs", "gpreempt", "cusync", "stream-k", "gslice", "gpucolo"),
        *("acs-sw", "acs-hw", "persistent-threads", "cuda-graph"),
        *("spawn", "dtbl", "aggregation"),
        *("atos-guideline", "atos-discrete", "atos-discrete-priority", "atos-persistent-block", "atos-persistent-warp"),
    ]
)
"""Names of systems that were published as a whole; other schedulers are rules, or what a GPU offers."""


def is_published(scheduler: str) -> bool:
    """Whether a scheduler, as it is named in rankings, is a system that was published as a whole."""
    return scheduler.removeprefix(PREFIX).partition("(")[0] in PUBLISHED
