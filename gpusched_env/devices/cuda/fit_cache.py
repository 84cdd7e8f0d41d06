"""Fits are kept on disk, so that another run on the same GPU does not measure again.

They hold for GPUs of one product with the same versions of driver, CUDA, CuPy and ``synthetic.cu``; a GPU whose clocks
or power were set since wants its file deleted. A file that cannot be read or written is no error: all is measured then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from gpusched_env.devices.cuda.fitting import Fit
from gpusched_env.devices.cuda.kernels import SOURCE
from gpusched_env.errors import InputError
from gpusched_env.reading import decoded, read_bytes

FORMAT: Final = "gpusched-fits/1"

S = TypeVar("S")


class Kept(msgspec.Struct, frozen=True):
    """A fit in the file."""

    stand: dict[str, Any]
    took_us: float


class Content(msgspec.Struct):
    """The file."""

    format: str
    fits: dict[str, Kept]
    """By first stand-in, wanted duration, gap, and whether blocks look for a recall."""


def cache_file(cupy: Any, product: str) -> Path | None:
    """Where the fits of a GPU are kept, in the user's cache; ``None``: nobody knows where that is.

    Args:
        cupy: the module.
        product: the GPU's name.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser("~/.cache"))  # As it is where there is no home.
    runtime = cupy.cuda.runtime
    source = resources.files(__package__).joinpath(SOURCE).read_bytes()
    parts = [
        product, f"driver-{runtime.driverGetVersion()}", f"cuda-{runtime.runtimeGetVersion()}",
        f"cupy-{cupy.__version__}", hashlib.sha256(source).hexdigest()[:12],
    ]  # fmt: skip
    name = re.sub(r"[^\w.-]+", "-", "_".join(parts))
    return base / "gpusched" / f"{name}.json" if base.is_absolute() else None


class FitCache:
    """Fits of one GPU, in memory and, with a path, in a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept = self._read()
        self._new = False

    def _read(self) -> dict[str, Kept]:
        """What is in the file; nothing where it is missing, damaged or of another kind."""
        with contextlib.suppress(InputError):
            if self._path is not None:
                content = decoded(read_bytes(self._path), Content, str(self._path))
                if content.format == FORMAT:
                    return content.fits
        return {}

    def of(
        self, first: S, duration_us: float, gap_us: float, measure: Callable[[], Fit[S]], *, recallable: bool = False
    ) -> Fit[S]:
        """A fit that is known, or else is measured.

        Args:
            first: a dataclass, from which the search for a stand-in begins.
            duration_us: wanted.
            gap_us: between two kernels, which is no part of it.
            measure: makes the fit.
            recallable: whether its blocks look for a recall, which takes them time.
        """
        key = json.dumps([type(first).__name__, msgspec.to_builtins(first), duration_us, gap_us, recallable])
        with contextlib.suppress(KeyError, msgspec.ValidationError):
            kept = self._kept[key]
            return Fit(msgspec.convert(kept.stand, type(first)), kept.took_us)
        fit = measure()
        self._kept[key] = Kept(msgspec.to_builtins(fit.stand), fit.took_us)
        self._new = True
        return fit

    def write(self) -> None:
        """Put what is new into the file, beside what other processes have put there."""
        if self._path is None or not self._new:
            return
        self._kept = {**self._read(), **self._kept}
        self._new = False
        beside = self._path.with_name(f"{self._path.name}.{uuid.uuid4().hex}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(msgspec.json.encode(Content(FORMAT, self._kept)))
            beside.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
