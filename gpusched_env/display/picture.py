"""An instant of an episode as a picture, and pictures of one instant after another as a film: an animated GIF or, with
moviepy, a video.

Above, the instant: a row a tenant with its jobs as squares, and the GPU as a grid of SMs, each filled by the threads of
the blocks on it. Below, time: a lane of kernels a tenant, and a row a SM. One colour a tenant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from gpusched_env.display.palette import TENANTS, rgb, tenant
from gpusched_env.display.scene import Floats, Scene
from gpusched_env.display.words import counted, time_text
from gpusched_env.errors import InputError, needs

WIDTH: Final = 800
LEFT: Final = 120
"""Pixels of the labels left of the time axis."""
RIGHT: Final = 16
TOP: Final = 64
"""Height of the header."""
GRID_WIDTH: Final = 276
"""Width of the picture of the GPU."""
LANE: Final = 26
"""Height of a tenant's row of kernels."""
NARROW_LANE: Final = 18
"""Height of a tenant's row of kernels with more than :data:`WIDE_LANES` tenants."""
WIDE_LANES: Final = 6
SM_PANEL: Final = 132
"""Height that the rows of SMs aim at."""
SQUARES: Final = 16
"""Jobs shown as squares at most; more are said in a number."""
COUNTS: Final = ("waiting", "running", "done", "rejected", "late")
LEGEND: Final = (
    "Full squares are jobs being served, pale ones wait.",
    "On the right, every SM of the GPU fills with the thread",
    "blocks it holds. Below, who ran when, and on which SM;",
    "a thin pale line: kernels that the scheduler holds back.",
)
COLUMNS: Final = (242, 304, 356, 426, 474)
"""Right ends of the columns of counts."""

FONT: Final = str(Path(__file__).with_name("DejaVuSans.ttf"))
"""DejaVu Sans 2.37, Latin letters and signs only: the font that Pillow brings along has no µ. Free, under the Bitstream
Vera licence (https://dejavu-fonts.github.io/License.html)."""
Colour = tuple[int, int, int]
INK: Colour = (40, 44, 52)
FAINT: Colour = (110, 116, 126)
GRID: Colour = (228, 231, 236)
PANEL: Colour = (244, 245, 248)
WHITE: Colour = (255, 255, 255)
LATE: Colour = (200, 30, 30)


def picture(
    scene: Scene, now_us: float, window_us: tuple[float, float], counted_us: float | None = None
) -> NDArray[np.uint8]:
    """The instant ``now_us``, uint8 of shape ``(height, width, 3)``; the size depends on tenants and SMs alone.

    Args:
        scene: what happened.
        now_us: what is later is not drawn.
        window_us: start and end of the time axis, which holds ``now_us``.
        counted_us: the instant at which jobs are counted, if it is another: at the end of an episode, what the last
            work led to.
    """
    return _Picture(scene, now_us, window_us, now_us if counted_us is None else counted_us).draw()


def palette(tenants: int) -> list[Colour]:
    """The colours that a picture of so many tenants mostly consists of, the first is that of the paper."""
    greys = [_mix(WHITE, INK, step / 8) for step in range(9)]
    own = [_colour(row) for row in range(min(tenants, len(TENANTS)))]
    shades = [_mix(colour, WHITE, share) for colour in own for share in (0.0, 0.2, 0.35, 0.45, 0.55, 0.65, 0.75)]
    edges = [_mix(colour, INK, 0.35) for colour in own]
    return [*greys, PANEL, GRID, FAINT, LATE, *shades, *edges]


class _Picture:
    def __init__(self, scene: Scene, now_us: float, window_us: tuple[float, float], counted_us: float) -> None:
        self.scene, self.now_us, self.counted_us = scene, now_us, counted_us
        self.start_us, self.end_us = window_us
        self.scale = (WIDTH - LEFT - RIGHT) / (self.end_us - self.start_us)
        tenants = len(scene.tenants)
        self.row = 50 if tenants <= 4 else max(22, 250 // tenants)
        self.cells = math.ceil(math.sqrt(scene.sms))
        self.cell = min(60, GRID_WIDTH // self.cells)
        grid = self.cell * math.ceil(scene.sms / self.cells)
        self.lanes_top = TOP + 40 + max(grid, self.row * tenants)
        self.lane = LANE if tenants <= WIDE_LANES else NARROW_LANE
        self.explained = self.lanes_top - TOP - 44 - self.row * tenants >= 18 * len(LEGEND)
        self.sms_top = self.lanes_top + self.lane * tenants + 10
        self.sm_pixels = min(24, max(1, SM_PANEL // scene.sms))
        self.sms_end = self.sms_top + self.sm_pixels * scene.sms
        self.image = Image.new("RGB", (WIDTH, self.sms_end + 26), WHITE)
        self.pen = ImageDraw.Draw(self.image)
        self.small, self.middle, self.large = (ImageFont.truetype(FONT, size) for size in (12, 13, 16))

    def draw(self) -> NDArray[np.uint8]:
        self._header()
        self._tenants()
        self._gpu()
        self._axis()
        self._lanes()
        self._sms()
        now = self._x(self.now_us)
        self.pen.line((now, self.lanes_top - 4, now, self.sms_end), fill=INK, width=2)
        return np.asarray(self.image, np.uint8).copy()

    def _x(self, time_us: float) -> int:
        inside = min(max(time_us, self.start_us), self.end_us)
        return LEFT + round((inside - self.start_us) * self.scale)

    def _header(self) -> None:
        scene, pen = self.scene, self.pen
        pen.text((16, 10), _clip(pen, scene.title, 560, self.large), fill=INK, font=self.large)
        pen.text((WIDTH - RIGHT, 12), time_text(self.now_us), fill=INK, font=self.large, anchor="ra")
        said = scene.command(self.now_us)
        words = f"last command: {said}" if said else "no command yet"
        pen.text((16, 36), _clip(pen, words, WIDTH - 32, self.middle), fill=FAINT, font=self.middle)

    def _tenants(self) -> None:
        """A row a tenant: its name, how many jobs are in which state, and those that are there as squares."""
        pen, scene = self.pen, self.scene
        for column, x in zip(COUNTS, COLUMNS, strict=True):
            pen.text((x, TOP + 4), column, fill=FAINT, font=self.small, anchor="ra")
        pen.text((16, TOP + 4), "jobs of", fill=FAINT, font=self.small)
        for row, name in enumerate(scene.tenants):
            top = TOP + 24 + row * self.row
            pen.line((16, top, COLUMNS[-1], top), fill=GRID)
            pen.rectangle((16, top + 6, 28, top + 18), fill=_colour(row))
            pen.text((36, top + 4), _clip(pen, name, 140, self.middle), fill=INK, font=self.middle)
            counts = scene.counts(row, self.counted_us)
            for column, x, number in zip(COUNTS, COLUMNS, counts, strict=True):
                bad = number and column in ("rejected", "late")
                colour = LATE if bad else INK if number else FAINT
                pen.text((x, top + 4), f"{number}", fill=colour, font=self.middle, anchor="ra")
            if self.row >= 38:
                below = top + min(28, self.row - 16)
                self._squares(row, below, counts.running, counts.waiting)
                held = counted(scene.held(row, self.now_us), "kernel")
                pen.text((COLUMNS[-1], below - 1), f"{held} held back", fill=FAINT, font=self.small, anchor="ra")
        if self.explained:
            for line, words in enumerate(LEGEND):
                y = self.lanes_top - 18 - 18 * (len(LEGEND) - line)
                pen.text((16, y), words, fill=FAINT, font=self.small)

    def _squares(self, row: int, top: int, running: int, waiting: int) -> None:
        colour = _colour(row)
        for place in range(min(SQUARES, running + waiting)):
            x = 36 + 16 * place
            fill = colour if place < running else _mix(colour, WHITE, 0.75)
            self.pen.rectangle((x, top, x + 11, top + 11), fill=fill, outline=colour)
        if running + waiting > SQUARES:
            more = f"+{running + waiting - SQUARES}"
            self.pen.text((40 + 16 * SQUARES, top - 2), more, fill=FAINT, font=self.small)

    def _gpu(self) -> None:
        """The SMs, each filled from below by the share of its threads that each tenant's blocks hold."""
        scene, left = self.scene, WIDTH - RIGHT - GRID_WIDTH
        busy, dram = scene.state(self.now_us)
        words = f"{scene.gpu}: {round(busy * scene.sms)} of {scene.sms} SMs busy, DRAM {dram:.0%}"
        self.pen.text((left, TOP + 4), _clip(self.pen, words, GRID_WIDTH, self.small), fill=FAINT, font=self.small)
        shares = scene.shares(self.now_us)
        inside = self.cell - 3
        for sm in range(scene.sms):
            x, y = left + sm % self.cells * self.cell, TOP + 25 + sm // self.cells * self.cell
            self.pen.rectangle((x, y, x + inside, y + inside), fill=PANEL, outline=GRID)
            bottom = y + inside
            total = max(1.0, shares[sm].sum())
            for row in np.flatnonzero(shares[sm]).tolist():
                # Even a single small block should be seen.
                height = max(3, round(shares[sm, row] / total * (inside + 1)))
                top = max(y, bottom - height + 1)
                if top <= bottom:
                    self.pen.rectangle((x, top, x + inside, bottom), fill=_colour(row))
                bottom = top - 1

    def _axis(self) -> None:
        span = self.end_us - self.start_us
        power = 10.0 ** math.floor(math.log10(span / 4.0))
        step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if span / (m * power) <= 8)
        tick = math.ceil(self.start_us / step) * step
        while tick <= self.end_us:
            x = self._x(tick)
            self.pen.line((x, self.lanes_top - 4, x, self.sms_end + 4), fill=GRID)
            label = f"{tick / 1e3:g} ms" if span >= 500.0 else f"{tick:g} µs"
            anchor = "ra" if x > WIDTH - 50 else "ma"
            self.pen.text((min(x, WIDTH - 4), self.sms_end + 7), label, fill=FAINT, font=self.small, anchor=anchor)
            tick += step

    def _lanes(self) -> None:
        """Kernels of each tenant as boxes, paler while they run; below them, thin, when they were held back."""
        scene = self.scene
        for row, name in enumerate(scene.tenants):
            top = self.lanes_top + row * self.lane
            self.pen.line((16, top, WIDTH - RIGHT, top), fill=GRID)
            label = _clip(self.pen, name, LEFT - 24, self.small)
            self.pen.text((16, top + (5 if self.lane == LANE else 1)), label, fill=_colour(row), font=self.small)
        _, _, issued, _, _, ended = scene.kernels.T
        near = (issued < self.end_us) & (ended >= self.start_us) & (issued <= self.now_us)
        for row, kernel, issued_us, launched_us, started_us, ended_us in scene.kernels[near].tolist():
            self._held(int(row), issued_us, min(launched_us, self.now_us))
            if started_us <= self.now_us and ended_us >= self.start_us:
                self._kernel(int(row), scene.names[int(kernel)], started_us, ended_us)

    def _kernel(self, row: int, name: str, started_us: float, ended_us: float) -> None:
        top = self.lanes_top + row * self.lane + 4
        x0, x1 = self._x(started_us), self._x(min(ended_us, self.now_us))
        under_way, colour = ended_us > self.now_us, _colour(row)
        fill = _mix(colour, WHITE, 0.45) if under_way else colour
        # Of kernels next to each other, the edges would be all that one sees.
        edge = _mix(colour, INK, 0.35) if x1 - x0 > 6 else fill
        self.pen.rectangle((x0, top, max(x0, x1 - 1), top + self.lane - 12), fill=fill, outline=edge)
        label = _clip(self.pen, name, x1 - x0 - 6, self.small) if x1 - x0 > 30 and self.lane == LANE else ""
        if label:
            self.pen.text((x0 + 4, top), label, fill=INK if under_way else WHITE, font=self.small)

    def _held(self, row: int, issued_us: float, until_us: float) -> None:
        x0, x1 = self._x(issued_us), self._x(until_us)
        if x1 > x0:
            top = self.lanes_top + (row + 1) * self.lane - 6
            self.pen.rectangle((x0, top, x1 - 1, top + 2), fill=_mix(_colour(row), WHITE, 0.55))

    def _sms(self) -> None:
        """A row a SM: the tenants whose blocks it held, the stronger the more of its threads they used."""
        scene = self.scene
        self.pen.text((16, self.sms_top), f"SM 0 to {scene.sms - 1}", fill=FAINT, font=self.small)
        share = self._shares_over_time()
        used = np.minimum(share.sum(axis=0), 1.0)
        colours = np.array([_colour(row) for row in range(len(scene.tenants))], np.float64)
        tint = np.einsum("tsx,tc->sxc", share, colours)
        total = share.sum(axis=0)[..., None]
        tint = np.divide(tint, total, out=np.zeros_like(tint), where=total > 0)
        # A busy SM starts at a third of full colour.
        strength = np.where(used > 0, 0.35 + 0.65 * used, 0.0)[..., None]
        pixels = np.repeat((1 - strength) * np.array(PANEL) + strength * tint, self.sm_pixels, axis=0).astype(np.uint8)
        if self.sm_pixels >= 6:
            pixels[self.sm_pixels - 1 :: self.sm_pixels] = WHITE
        self.image.paste(Image.fromarray(pixels), (LEFT, self.sms_top))

    def _shares_over_time(self) -> Floats:
        """Share of each SM's threads that blocks of each tenant used; shape ``(tenants, SMs, pixels)``."""
        scene = self.scene
        change = np.zeros((len(scene.tenants), scene.sms, WIDTH - LEFT - RIGHT + 1))
        started, ended = scene.blocks[:, 3], scene.blocks[:, 4]
        shown = scene.blocks[(ended >= self.start_us) & (started < self.end_us) & (started <= self.now_us)]
        began = np.maximum(shown[:, 3], self.start_us)
        until = np.minimum(shown[:, 4], min(self.end_us, self.now_us))
        x0 = np.rint((began - self.start_us) * self.scale).astype(np.int64)
        x1 = np.maximum(x0 + 1, np.rint((until - self.start_us) * self.scale).astype(np.int64))
        sm, row = shown[:, 0].astype(np.int64), shown[:, 1].astype(np.int64)
        last = change.shape[2] - 1
        # What fills a part of a pixel only counts for that part.
        weight = shown[:, 2] * np.minimum(1.0, np.maximum((until - began) * self.scale, 0.05) / (x1 - x0))
        np.add.at(change, (row, sm, np.minimum(x0, last)), weight)
        np.add.at(change, (row, sm, np.minimum(x1, last)), -weight)
        shares: Floats = np.cumsum(change, axis=2)[:, :, :-1]
        shares[shares < 1e-9] = 0.0
        return shares


def _colour(row: int) -> Colour:
    return rgb(tenant(row).colour)


def _mix(a: Colour, b: Colour, share: float) -> Colour:
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


def _clip(pen: ImageDraw.ImageDraw, label: str, width: float, font: ImageFont.FreeTypeFont) -> str:
    """As much of ``label`` as fits into ``width`` pixels; nothing if that is less than three characters."""
    while len(label) >= 3 and pen.textlength(label, font=font) > width:
        label = label[:-1]
    return label if len(label) >= 3 else ""


PAUSE = 10
"""Frames for which the last picture of a film stays."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What of an episode a film shows, and how fast. Times are microseconds since the episode's start."""

    window_us: tuple[float, float]
    """Start and end of what is shown: the time axis of every picture."""
    last_us: float
    """Simulated time of the last moment of work."""
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
        raise InputError(f"{path}: {needs('a video', 'moviepy')}; a .gif does not") from error
    # Most players want even sizes.
    even = [p[: p.shape[0] // 2 * 2, : p.shape[1] // 2 * 2] for p in pictures]
    ImageSequenceClip(even, fps=frames_per_s).write_videofile(str(path), logger=None)
