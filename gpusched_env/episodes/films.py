"""Films of episodes; Pillow is loaded with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.display.film import Cut, film
from gpusched_env.episodes.scenes import last_work_us, scene
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from gpusched_env.episodes.played import PlayedEpisode


def animate(
    episode: PlayedEpisode,
    path: Path,
    window_us: tuple[float, float] | None,
    frames: int,
    frames_per_s: float,
    title: str,
) -> Path:
    """As :meth:`~gpusched_env.episodes.session.Episode.animate` says."""
    if episode.last is None:
        raise InputError("films show kernels, which were not recorded: run with record='blocks'")
    last_us = last_work_us(episode.timeline, episode.last)
    window_us = window_us or (0.0, last_us)
    shown = scene(episode.problem, episode.timeline, episode.last, title or episode.problem.scenario.name, window_us[0])
    return film(shown, path, Cut(window_us, last_us, episode.end_us, frames, frames_per_s))
