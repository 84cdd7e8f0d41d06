"""The errors that users meet. Each message names what was wrong, where, and what would be right."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator

MOST_LETTERS = 2000
"""Most letters of a line that an error shows; of longer ones it leaves out the middle."""


class GpuschedError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(GpuschedError):
    """A file, key, name or value that the user gave is not acceptable: one line, whatever was found there."""

    def __str__(self) -> str:
        line = " ".join(super().__str__().splitlines())
        half = MOST_LETTERS // 2
        return line if len(line) <= MOST_LETTERS else f"{line[:half]} ... {line[-half:]}"


class IllegalCommand(GpuschedError):
    """A scheduler gave a command that is not legal now; the device's state is unchanged."""


class DeadlockError(GpuschedError):
    """Work is left but nothing can ever happen again; the message lists what waits for what."""


class ThreadError(GpuschedError):
    """Two threads use one object at once, which can only be used by one after the other."""


class GpuError(GpuschedError):
    """A real GPU, its driver or a kernel on it has failed; nothing is left on it."""


_PACKAGES = {
    "experiments": "cloudpickle jinja2 loky markupsafe matplotlib pandas perfetto plotly pyarrow rich scipy typer",
    "train": "cmaes sb3_contrib stable_baselines3 tensorboard torch",
    "sweep": "optuna sqlalchemy",
    "ray": "dm_tree lz4 ormsgpack ray",
    "video": "moviepy",
    "gpu": "cuda cupy nvmath",
}
EXTRA_OF = {package: extra for extra, packages in _PACKAGES.items() for package in packages.split()}
"""Extras by what they bring, as it is imported."""


def needs(what: str, package: str) -> str:
    """One sentence for a package that is not installed, with the extra that brings it.

    Args:
        what: it is for, in the words of whoever asked.
        package: that is missing, as it is imported.
    """
    top = package.partition(".")[0]
    return f"{what} needs {top}: {_installing(EXTRA_OF[top])}"


def _installing(extra: str) -> str:
    """The command that installs an extra from where this package came: a checkout, a wheel, else an index."""
    import json
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import unquote

    source = Path(__file__).resolve().parents[1]
    try:
        found = metadata.distribution("gpusched-env").read_text("direct_url.json")
        origin = json.loads(found) if found else {}
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
        if (source / "pyproject.toml").is_file():
            origin = {"url": source.as_uri(), "dir_info": {}}
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {editable}'{unquote(url.removeprefix('file://'))}[{extra}]'"
    return f"pip install 'gpusched-env[{extra}]{f' @ {url}' if url else ''}'"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A hint that names the closest of ``known`` or, without one, all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


@contextlib.contextmanager
def leaving_is_an_error(who: str) -> Iterator[None]:
    """A user's code that calls ``sys.exit`` does not end the program, with a status that says that all went well.

    Raises:
        InputError: it does.
    """
    try:
        yield
    except SystemExit as leaving:
        raise InputError(f"{who} called sys.exit({leaving.code!r}): raise an error, or return Wait()") from leaving
