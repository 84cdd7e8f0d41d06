"""The recent timeline as a picture, the way a profiler shows it: streams above, SMs below, one time axis."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from gpusched_env.display import palette
from gpusched_env.envs.text import kernel_name, time_text
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Timeline
from gpusched_env.scheduling.view import View

WIDTH = 1040
LEFT = 150
"""Pixels of the labels left of the time axis."""
RIGHT = 16
TOP = 58
LANE = 46
"""Height of a tenant's row of kernels."""
GRAPH = 52
"""Height of the graph of SM use."""
SM_PANEL = 264
"""Height that the SM rows aim at."""

FONT = str(Path(__file__).with_name("DejaVuSans.ttf"))
"""DejaVu Sans 2.37, Latin letters and signs only: the font that Pillow brings along has no µ. Free, under the Bitstream
Vera licence (https://dejavu-fonts.github.io/License.html)."""

Colour = tuple[int, int, int]
INK: Colour = (40, 44, 52)
FAINT: Colour = (140, 146, 156)
GRID: Colour = (228, 231, 236)
AREA: Colour = (206, 212, 221)
PANEL: Colour = (247, 248, 250)
WHITE: Colour = (255, 255, 255)
DRAM: Colour = (190, 60, 60)
TENANTS: tuple[Colour, ...] = tuple(map(palette.rgb, palette.TENANTS))


def window_us(problem: Problem) -> float:
    """A span of time that shows some 25 kernels of a tenant: 1, 2 or 5 times a power of ten."""
    mean = float(np.mean([profile.duration_us for profile in problem.kernels]) + np.mean(problem.gaps_us))
    longest = max(program.alone_us for program in problem.programs)
    span = min(25.0 * mean, 3.0 * longest, problem.scenario.horizon_us)
    power = 10.0 ** math.floor(math.log10(span))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= span * (1 - 1e-9))


def picture(problem: Problem, view: View, timeline: Timeline, span_us: float | None = None) -> NDArray[np.uint8]:
    """The last ``span_us`` of an episode (by default :func:`window_us`), uint8 of shape ``(height, width, 3)``.

    A tenant's row shows its kernels as boxes and, in a strip below, how long they were pending. The SM panel
    colours each SM by the tenants whose blocks it held, the stronger the more of its threads were in use.
    Finished kernels come from the timeline (detail ``kernels``), block residencies from detail ``blocks``.
    """
    return _Picture(problem, view, timeline, span_us if span_us is not None else window_us(problem)).draw()


class _Picture:
    def __init__(self, problem: Problem, view: View, timeline: Timeline, span_us: float) -> None:
        self.problem, self.view, self.timeline = problem, view, timeline
        self.names = [program.tenant.name for program in problem.programs]
        self.start_us = max(0.0, view.time_us - 0.96 * span_us)
        self.end_us = self.start_us + span_us
        self.scale = (WIDTH - LEFT - RIGHT) / span_us
        self.sm_pixels = min(24, max(1, SM_PANEL // problem.gpu.sms))
        self.streams_end = TOP + LANE * len(self.names)
        self.graph_top = self.streams_end + 14
        self.sms_top = self.graph_top + GRAPH + 14
        self.sms_end = self.sms_top + self.sm_pixels * problem.gpu.sms
        self.image = Image.new("RGB", (WIDTH, self.sms_end + 34), WHITE)
        self.pen = ImageDraw.Draw(self.image)
        self.small = ImageFont.truetype(FONT, 11)
        self.large = ImageFont.truetype(FONT, 14)

    def draw(self) -> NDArray[np.uint8]:
        self._header()
        self._axis()
        self._streams()
        self._graph()
        self._sms()
        now = self._x(self.view.time_us)
        self.pen.line((now, TOP - 4, now, self.sms_end), fill=INK)
        return np.asarray(self.image, np.uint8).copy()

    def _x(self, time_us: float) -> int:
        inside = min(max(time_us, self.start_us), self.end_us)
        return LEFT + round((inside - self.start_us) * self.scale)

    def _shown(self, started_us: float, ended_us: float) -> bool:
        return ended_us >= self.start_us and started_us < self.end_us

    def _header(self) -> None:
        view, gpu = self.view, self.problem.gpu
        left = f"{self.problem.scenario.name}  ·  {gpu.name}"
        right = (
            f"{time_text(view.time_us)}    SMs {view.busy_sms}/{view.sms}    "
            f"occupancy {view.occupancy:.0%}    DRAM {view.dram:.0%}"
        )
        self.pen.text((16, 14), left, fill=INK, font=self.large)
        self.pen.text((WIDTH - RIGHT, 14), right, fill=INK, font=self.large, anchor="ra")

    def _axis(self) -> None:
        span = self.end_us - self.start_us
        power = 10.0 ** math.floor(math.log10(span / 4.0))
        step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if span / (m * power) <= 10)
        tick = math.ceil(self.start_us / step) * step
        while tick <= self.end_us:
            x = self._x(tick)
            self.pen.line((x, TOP - 4, x, self.sms_end + 4), fill=GRID)
            label = f"{tick / 1e3:g} ms" if step >= 100.0 else f"{tick:g} µs"
            self.pen.text((x, self.sms_end + 8), label, fill=FAINT, font=self.small, anchor="ma")
            tick += step

    def _streams(self) -> None:
        view, rejections = self.view, self.timeline.rejections.exact
        for row, name in enumerate(self.names):
            top = TOP + row * LANE
            self.pen.line((16, top, WIDTH - RIGHT, top), fill=GRID)
            self.pen.rectangle((16, top + 9, 25, top + 18), fill=_colour(row))
            self.pen.text((32, top + 6), _clip(self.pen, name, LEFT - 40, self.small), fill=INK, font=self.small)
            jobs = f"jobs: {view.tenants.jobs_waiting[row]:.0f} in, {view.tenants.jobs_done[row]:.0f} done"
            given_up = int((rejections[:, 0] == row).sum())
            jobs += f", {given_up} rejected" if given_up else ""
            self.pen.text((32, top + 22), jobs, fill=FAINT, font=self.small)
        kernels = self.timeline.kernels.dict()
        recent = np.flatnonzero(kernels["ended_us"] >= self.start_us)
        for i in recent.tolist():
            row = int(kernels["tenant"][i])
            self._waited(row, kernels["issued_us"][i], kernels["launched_us"][i])
            self._kernel(
                row, int(kernels["identity"][i]), kernels["started_us"][i], kernels["ended_us"][i], open_=False
            )
        for i in range(len(view.running)):
            if view.running.started[i]:
                row, identity = int(view.running.tenant[i]), int(view.running.identity[i])
                self._kernel(row, identity, view.running.started_us[i], view.time_us, open_=True)
        for i in range(len(view.pending)):
            self._waited(int(view.pending.tenant[i]), view.pending.issued_us[i], view.time_us)

    def _kernel(self, row: int, identity: int, started_us: float, ended_us: float, *, open_: bool) -> None:
        if not self._shown(started_us, ended_us):
            return
        top = TOP + row * LANE + 8
        x0, x1 = self._x(started_us), self._x(ended_us)
        colour = _colour(row)
        fill = _mix(colour, WHITE, 0.45) if open_ else colour
        self.pen.rectangle((x0, top, max(x0, x1 - 1), top + 21), fill=fill, outline=_mix(colour, INK, 0.35))
        label = _clip(self.pen, kernel_name(self.problem, identity, 60), x1 - x0 - 6, self.small)
        if label:
            self.pen.text((x0 + 4, top + 4), label, fill=INK if open_ else WHITE, font=self.small)

    def _waited(self, row: int, issued_us: float, launched_us: float) -> None:
        if self._shown(issued_us, launched_us) and launched_us > issued_us:
            top = TOP + row * LANE + 34
            x0, x1 = self._x(issued_us), self._x(launched_us)
            self.pen.rectangle((x0, top, max(x0, x1 - 1), top + 4), fill=_mix(_colour(row), WHITE, 0.55))

    def _graph(self) -> None:
        """Busy SMs as an area and DRAM traffic as a line, from the timeline's device states."""
        top, bottom = self.graph_top, self.graph_top + GRAPH
        self.pen.text((16, top + 2), "busy SMs", fill=FAINT, font=self.small)
        self.pen.text((16, top + 18), "DRAM", fill=DRAM, font=self.small)
        self.pen.line((LEFT, bottom, WIDTH - RIGHT, bottom), fill=GRID)
        steps = self.timeline.sms.array
        first = max(0, int(np.searchsorted(steps[:, 0], self.start_us)) - 1)
        steps = steps[first:]
        line: list[tuple[int, int]] = []
        for i, (since_us, busy, traffic, _) in enumerate(steps):
            until_us = steps[i + 1, 0] if i + 1 < len(steps) else self.view.time_us
            x0, x1 = self._x(since_us), self._x(until_us)
            height = math.ceil(busy / self.problem.gpu.sms * GRAPH)
            if height > 0 and x1 > x0:
                self.pen.rectangle((x0, bottom - height, x1 - 1, bottom - 1), fill=AREA)
            y = round(bottom - min(1.0, traffic / self.problem.gpu.dram_bytes_per_us) * GRAPH)
            line += [(x0, y), (x1, y)]
        if line:
            self.pen.line(line, fill=DRAM)

    def _sms(self) -> None:
        gpu = self.problem.gpu
        self.pen.text((16, self.sms_top), f"SM 0 to {gpu.sms - 1}", fill=FAINT, font=self.small)
        share = self._sm_shares()
        used = np.minimum(share.sum(axis=0), 1.0)
        tint = np.zeros((*used.shape, 3))
        for row in range(len(self.names)):
            tint += share[row][..., None] * np.array(_colour(row))
        total = share.sum(axis=0)[..., None]
        tint = np.divide(tint, total, out=np.zeros_like(tint), where=total > 0)
        # Even a single small block should be seen: a busy SM starts at a third of full colour.
        strength = np.where(used > 0, 0.35 + 0.65 * used, 0.0)[..., None]
        pixels = (1 - strength) * np.array(PANEL) + strength * tint
        pixels = np.repeat(pixels, self.sm_pixels, axis=0).astype(np.uint8)
        if self.sm_pixels >= 6:
            pixels[self.sm_pixels - 1 :: self.sm_pixels] = WHITE
        self.image.paste(Image.fromarray(pixels), (LEFT, self.sms_top))

    def _sm_shares(self) -> NDArray[np.float64]:
        """Share of each SM's threads that blocks of each tenant used; shape ``(tenants, SMs, pixels)``."""
        gpu = self.problem.gpu
        change = np.zeros((len(self.names), gpu.sms, WIDTH - LEFT - RIGHT + 1))
        blocks = self.timeline.blocks.array
        blocks = blocks[(blocks[:, 4] >= self.start_us) & (blocks[:, 3] < self.end_us)]
        kernels, of_kernel = np.unique(blocks[:, 1], return_inverse=True)
        owners = self._owners(kernels)
        # Of a graph that runs, a view does not show the nodes.
        known = owners[of_kernel, 0] >= 0
        blocks, of_kernel = blocks[known], of_kernel[known]
        row, threads = owners[of_kernel, 0].astype(np.int64), owners[of_kernel, 1]
        used = blocks[:, 2] * threads / gpu.limits.threads
        began, ended = (np.clip(blocks[:, column], self.start_us, self.end_us) for column in (3, 4))
        x0 = np.rint((began - self.start_us) * self.scale).astype(np.int64)
        x1 = np.maximum(x0 + 1, np.rint((ended - self.start_us) * self.scale).astype(np.int64))
        sm = blocks[:, 0].astype(np.int64)
        last = change.shape[2] - 1
        np.add.at(change, (row, sm, np.minimum(x0, last)), used)
        np.add.at(change, (row, sm, np.minimum(x1, last)), -used)
        shares = np.cumsum(change, axis=2)[:, :, :-1]
        shares[shares < 1e-9] = 0.0
        return shares

    def _owners(self, kernels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Tenant and threads a block of launch ids, -1 where they are not known; shape ``(ids, 2)``."""
        finished = self.timeline.kernels.array
        of = {int(k[0]): (k[1], int(k[3])) for k in finished[np.isin(finished[:, 0], kernels)]}
        for table in (self.view.running, self.view.pending):
            of |= {int(k): (t, int(i)) for k, t, i in zip(table.id, table.tenant, table.identity, strict=True)}
        owners = np.full((len(kernels), 2), -1.0)
        for position, kernel in enumerate(kernels):
            if int(kernel) in of:
                tenant, identity = of[int(kernel)]
                owners[position] = tenant, self.problem.kernels[identity].footprint.threads
        return owners


def _colour(row: int) -> Colour:
    return palette.rgb(palette.tenant(row).colour)


def _mix(a: Colour, b: Colour, share: float) -> Colour:
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


def _clip(
    pen: ImageDraw.ImageDraw, label: str, width: float, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> str:
    """As much of ``label`` as fits into ``width`` pixels; nothing if that is less than three characters."""
    while len(label) >= 3 and pen.textlength(label, font=font) > width:
        label = label[:-1]
    return label if len(label) >= 3 else ""
