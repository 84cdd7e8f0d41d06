"""The films of the documentation: ``python -m gpusched_env.experiments.pictures docs/pictures``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from gpusched_env.display.picture import FONT, WIDTH
from gpusched_env.display.words import time_text
from gpusched_env.experiments.lib.play import run_episode
from gpusched_env.scenarios.games import load_room, places_of
from gpusched_env.scenarios.scenario import scenario_names


@dataclass(frozen=True, slots=True)
class Shot:
    """What is filmed of a scenario."""

    scheduler: str
    until_ms: float
    """End of what is shown."""
    from_ms: float = 0.0
    frames: int = 38


GPU = "gpu"
"""The film on top of the README."""
SHOWN = "MultiTenantSaturated"
"""Scenario of the film on top of the README."""
LONG = Shot("orion", 13.0, frames=110)
SERVING = Shot("moore", 60.0, from_ms=40.0)
BESIDE = Shot("orion", 10.0)
COLOCATED = Shot("gpucolo(period_s=0.01)", 70.0, from_ms=30.0)
SHOTS = {
    **{name: BESIDE for name in scenario_names() if name.startswith("InferenceBeside")},
    **{name: SERVING for name in scenario_names() if name.startswith("Serving")},
    "DependentKernels": Shot("cusync", 10.0),
    "DependentKernelsShared": Shot("cusync", 10.0),
    "KernelGraph": Shot("earliest-start", 1.4),
    "MultiTenantBurst": Shot("llf", 60.0, from_ms=40.0),
    "MultiTenantSaturated": Shot("orion", 20.0),
    "PreemptiveServing": Shot("preemptive-priority", 20.0),
    "PriorityFill": Shot("fikit", 40.0),
    "ThreeTenants": Shot("orion", 20.0),
    "SharedMemory": Shot("bwlock(events=12288)", 80.0, from_ms=30.0),
    "ServingColocated": COLOCATED,
    "ServingColocatedMasked": COLOCATED,
    "ServingOverload": Shot("moore", 60.0, from_ms=40.0, frames=34),
    "ServingLanguageModel": Shot("pass-through", 64.0, frames=24, from_ms=56.0),
    "Toy": Shot("sjf", 0.52),
}
"""Shots by scenario."""


def shoot(name: str, shot: Shot, path: Path) -> None:
    """Play the scenario and write its film."""
    until_us = shot.until_ms * 1e3
    episode = run_episode(name, shot.scheduler, seed=1, record="blocks", horizon_us=until_us)
    title = f"{name}, scheduled by {shot.scheduler}"
    episode.animate(path, window_us=(shot.from_ms * 1e3, until_us), frames=shot.frames, frames_per_s=8.0, title=title)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} KB", flush=True)


@dataclass(frozen=True, kw_only=True)
class GameFilm:
    """A game's film: the picture of an episode, uncovered from left to right."""

    env: str
    """Name of the environment, without its namespace."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of it."""
    seed: int = 1
    choose: Callable[[Any, dict[str, Any]], int]
    """The action, by observation and info."""
    title: str
    clock: Callable[[float], str] = time_text
    """A time in microseconds in words."""
    frames: int = 40

    def __call__(self, path: Path) -> None:
        """Play the episode and write its film."""
        env = gym.make(f"gpusched_env:gpusched/{self.env}", render_mode="rgb_array", **self.options)
        observation, info = env.reset(seed=self.seed)
        over = False
        while not over:
            observation, _, done, cut, info = env.step(self.choose(observation, info))
            over = done or cut
        uncover(env.render(), self.title, self.clock(info["time_us"]), path, self.frames)


def uncover(picture: Any, title: str, end: str, path: Path, frames: int = 40) -> None:
    """The film of a picture over time, from left to right, in five seconds."""
    drawn = Image.fromarray(np.asarray(picture, np.uint8))
    drawn = drawn.resize((WIDTH - 32, WIDTH // 2), Image.Resampling.NEAREST)
    pages = [_page(drawn, width, title, end) for width in np.linspace(0, drawn.width, frames).astype(int)]
    pages[0].save(path, save_all=True, append_images=pages[1:], duration=5000 // frames, loop=0, optimize=True)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} KB", flush=True)


def _page(drawn: Image.Image, width: int, title: str, end: str) -> Image.Image:
    """The left part of a picture, below a title and above its time axis."""
    page = Image.new("RGB", (WIDTH, drawn.height + 80), (255, 255, 255))
    pen, font = ImageDraw.Draw(page), ImageFont.truetype(FONT, 15)
    pen.text((16, 14), title, fill=(40, 44, 52), font=font)
    page.paste(drawn.crop((0, 0, max(1, width), drawn.height)), (16, 44))
    pen.line((16, drawn.height + 45, WIDTH - 16, drawn.height + 45), fill=(40, 44, 52))
    pen.text((16, drawn.height + 52), "0", fill=(110, 116, 126), font=font)
    pen.text((WIDTH - 16, drawn.height + 52), end, fill=(110, 116, 126), font=font, anchor="ra")
    return page.quantize(16, dither=Image.Dither.NONE)


def main(folder: Path, names: Sequence[str]) -> None:
    """Write the films of these scenarios, or all and the README's."""
    folder.mkdir(parents=True, exist_ok=True)
    shots = {name: load_room(film) for name, film in places_of("film").items()}
    for name in names or [*SHOTS, *shots]:
        if name in shots:
            shots[name](folder / f"{name}.gif")
        elif name in SHOTS:
            shoot(name, SHOTS[name], folder / f"{name}.gif")
    if not names or GPU in names:
        shoot(SHOWN, LONG, folder / f"{GPU}.gif")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m gpusched_env.experiments.pictures FOLDER [SCENARIO...]")
    main(Path(sys.argv[1]), sys.argv[2:])
