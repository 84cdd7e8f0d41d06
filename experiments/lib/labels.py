"""How schedulers are named where results are shown: short, different from each other, and marked if told the truth."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from gpusched_env.agents.training.folder import BEST, EXPORTED
from gpusched_env.experiments.lib.trained import LEARNED, TRUST

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
    """With so many parts of the path in it, if there is one."""
    if name.startswith(f"{LEARNED}:"):
        parts = Path(name.removeprefix(f"{LEARNED}:").removesuffix(TRUST)).parts
        parts = parts[:-1] if len(parts) > 1 and parts[-1] in (EXPORTED, BEST) else parts
        shown = parts[-depth:] if parts[-depth:] != (LEARNED,) else (".", *parts)[-2:]
        return f"{LEARNED}:{'/'.join(shown)}"
    path, suffix, rest = name.partition(".py:")
    return "/".join(Path(path).parts[-depth:]) + suffix + rest if suffix else name
