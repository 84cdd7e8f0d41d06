"""The films of the documentation: ``python -m gpusched_env.experiments.pictures docs/pictures``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
from PIL import Image, ImageDraw, ImageFont

from gpusched_env.display.picture import FONT, WIDTH
from gpusched_env.experiments.api import run_episode
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
"""What it shows."""
LONG = Shot("orion", 13.0, frames=110)
SERVING = Shot("moore", 60.0, from_ms=40.0)
BESIDE = Shot("orion", 10.0)
SHOTS = {
    **{name: BESIDE for name in scenario_names() if name.startswith("InferenceBeside")},
    **{name: SERVING for name in scenario_names() if name.startswith("Serving")},
    "KernelGraph": Shot("earliest-start", 1.4),
    "MultiTenantBurst": Shot("llf", 60.0, from_ms=40.0),
    "MultiTenantSaturated": Shot("orion", 20.0),
    "PreemptiveServing": Shot("preemptive-priority", 20.0),
    "PriorityFill": Shot("fikit", 40.0),
    "ThreeTenants": Shot("orion", 20.0),
    "Toy": Shot("sjf", 0.52),
}
"""By scenario."""
LAUNCHES = "DynamicParallelism"


def shoot(name: str, shot: Shot, path: Path) -> None:
    """Play the scenario and write its film."""
    until_us = shot.until_ms * 1e3
    episode = run_episode(name, shot.scheduler, seed=1, record="blocks", horizon_us=until_us)
    title = f"{name}, scheduled by {shot.scheduler}"
    episode.animate(path, window_us=(shot.from_ms * 1e3, until_us), frames=shot.frames, frames_per_s=8.0, title=title)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} KB", flush=True)


def shoot_launches(path: Path) -> None:
    """Play an application whose threads launch kernels, and write its film, of some 40 pictures."""
    environment = "gpusched_env:gpusched/DynamicParallelism-v0"
    decisions = _play(gym.make(environment), every=0)[0]
    _, pictures = _play(gym.make(environment, render_mode="rgb_array"), every=max(1, decisions // 40))
    title = "DynamicParallelism: kernels that threads launched; on SMs (blue), waiting (orange), over time"
    pictures = [_below(title, picture) for picture in pictures]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=125, loop=0, optimize=True)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} KB", flush=True)


def _play(env: gym.Env[Any, Any], every: int) -> tuple[int, list[Image.Image]]:
    """Launch whatever asks; the number of decisions and a picture ``every`` so many (0: none)."""
    _, info = env.reset(seed=1)
    decisions, over, pictures = 0, False, []
    while not over:
        _, _, over, _, info = env.step(int(info["action_mask"][1]))
        decisions += 1
        if every and (decisions % every == 0 or over):
            pictures.append(Image.fromarray(env.render()))  # type: ignore[arg-type]  # An array, in this mode.
    return decisions, pictures


def _below(title: str, picture: Image.Image) -> Image.Image:
    page = Image.new("RGB", (WIDTH, WIDTH // 2 + 60), (255, 255, 255))
    ImageDraw.Draw(page).text((16, 16), title, fill=(40, 44, 52), font=ImageFont.truetype(FONT, 15))
    page.paste(picture.resize((WIDTH - 32, WIDTH // 2), Image.Resampling.NEAREST), (16, 50))
    return page.quantize(16, dither=Image.Dither.NONE)


def main(folder: Path, names: Sequence[str]) -> None:
    """Write the films of these scenarios, or all and the README's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or [*SHOTS, LAUNCHES]:
        if name == LAUNCHES:
            shoot_launches(folder / f"{name}.gif")
        elif name in SHOTS:
            shoot(name, SHOTS[name], folder / f"{name}.gif")
    if not names or GPU in names:
        shoot(SHOWN, LONG, folder / f"{GPU}.gif")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m gpusched_env.experiments.pictures FOLDER [SCENARIO...]")
    main(Path(sys.argv[1]), sys.argv[2:])
