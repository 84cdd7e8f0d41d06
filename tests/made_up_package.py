"""A package of a few files in place of this one, for tests of what is found in sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from gpusched_env import closure, sources
from gpusched_env.experiments.ranking import made

CACHES: tuple[Any, ...] = (
    *(closure.source, closure._shipped, made._shipped_data),
    *(sources.is_shipped, sources.name_of, sources._memory, sources._new, sources._read),
)


@contextmanager
def instead(root: Path, files: Mapping[str, str]) -> Iterator[None]:
    """Write files, and let them be the package's, with nothing known of others."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with ExitStack() as undo:
        for module in (closure, made, sources):
            undo.enter_context(mock.patch.object(module, "ROOT", root))
        undo.callback(forget)
        forget()
        yield


def forget() -> None:
    """Know nothing but what is on disk, as a new process does."""
    for cache in CACHES:
        cache.cache_clear()
