"""Episodes as films: pictures of one instant after another, as an animated GIF or, with moviepy, a video."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gpusched_env.display.picture import palette, picture
from gpusched_env.display.scene import Scene
from gpusched_env.errors import InputError

PAUSE = 10
"""Frames for which the last picture of a film stays."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What of an episode a film shows, and how fast. Times are microseconds since the episode's start."""

    window_us: tuple[float, float]
    """Start and end of what is shown: the time axis of every picture."""
    last_us: float
    """The last moment of work."""
    end_us: float
    """End of the episode: there the jobs of a film that goes on to the last moment of work are counted at its end."""
    frames: int
    """Pictures, at equal distances of simulated time."""
    frames_per_s: float


def film(scene: Scene, path: Path, cut: Cut) -> Path:
    """Write what happened in an episode that is over, to a ``.gif`` or, with moviepy, an ``.mp4``.

    Raises:
        InputError: the path ends otherwise, nothing ran in the window, it is empty, there are less than two pictures,
            or moviepy is missing.
    """
    start_us, until_us = cut.window_us
    if path.suffix not in (".gif", ".mp4"):
        raise InputError(f"{path}: films end in .gif or .mp4")
    if not 0 <= start_us < until_us:
        raise InputError(f"a film from {start_us:g} to {until_us:g} us: it starts at 0 or later and ends after that")
    if cut.frames < 2 or cut.frames_per_s <= 0:
        raise InputError(f"a film of {cut.frames} pictures, {cut.frames_per_s:g} a second: at least 2, more than 0")
    if cut.last_us <= start_us:
        raise InputError(f"nothing ran from {start_us:g} us on: the last kernel ended at {cut.last_us:g} us")
    *instants, last_us = np.linspace(start_us, min(cut.last_us, until_us), cut.frames).tolist()
    pictures = [picture(scene, now_us, cut.window_us) for now_us in instants]
    pictures.append(picture(scene, last_us, cut.window_us, cut.end_us if last_us == cut.last_us else None))
    pictures += [pictures[-1]] * PAUSE
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        _gif(pictures, path, cut.frames_per_s, palette(len(scene.tenants)))
    else:
        _video(pictures, path, cut.frames_per_s)
    return path


def _gif(
    pictures: Sequence[NDArray[np.uint8]], path: Path, frames_per_s: float, colours: Sequence[tuple[int, int, int]]
) -> None:
    shared = Image.new("P", (1, 1))
    shared.putpalette([part for colour in colours for part in colour])
    frames = [Image.fromarray(p).quantize(palette=shared, dither=Image.Dither.NONE) for p in pictures]
    duration_ms = round(1e3 / frames_per_s)
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=duration_ms, loop=0, optimize=True)


def _video(pictures: Sequence[NDArray[np.uint8]], path: Path, frames_per_s: float) -> None:
    try:
        from moviepy.video.io.ImageSequenceClip import ImageSequenceClip
    except ImportError as error:
        raise InputError(f"{path}: videos need moviepy: pip install 'gpusched-env[video]'; a .gif does not") from error
    # Most players want even sizes.
    even = [p[: p.shape[0] // 2 * 2, : p.shape[1] // 2 * 2] for p in pictures]
    ImageSequenceClip(even, fps=frames_per_s).write_videofile(str(path), logger=None)
