"""More launches than the pool of pending ones has room for: each try is a process of its own, as it may never end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

import msgspec

from gpusched_env.experiments.measure.gpu import DEFAULT_POOL, MeasuringGpu
from gpusched_env.experiments.measure.recording import Overflow
from gpusched_env.games.child_launches.measure.child_launches import LaunchingKernel, LaunchPattern

PATIENCE_S: Final = 15.0
"""After which a try counts as hung; with room for all, the slowest of them takes a tenth of a second."""
_LARGER: Final = 4096
_LONG_US: Final = 200.0
"""Of a child: far longer than it takes to launch as many as the pool holds."""
TRIES: Final = (
    *((DEFAULT_POOL, LaunchPattern(warps=warps, spin_us=spin)) for warps in (64, 65, 128) for spin in (0.0, _LONG_US)),
    *((DEFAULT_POOL, LaunchPattern(rounds=128, spin_us=spin)) for spin in (0.0, _LONG_US)),
    *((_LARGER, LaunchPattern(warps=warps, spin_us=_LONG_US)) for warps in (128, 129)),
)
"""Bursts that fit exactly, that are one warp too large and twice too large, and calls of one warp."""


def measured() -> Iterator[Overflow]:
    """All tries, side by side."""
    running = [(pool, shape, _started(pool, shape)) for pool, shape in TRIES]
    deadline = time.monotonic() + PATIENCE_S
    for pool, shape, process in running:
        try:
            output, errors = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            yield _overflow(pool, shape, "hung")
            continue
        if process.returncode:
            yield _overflow(pool, shape, errors.strip().splitlines()[-1])
        else:
            yield msgspec.json.decode(output, type=Overflow)


def _started(pool: int, shape: LaunchPattern) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", __name__, msgspec.json.encode((pool, shape)).decode()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _overflow(
    pool: int, shape: LaunchPattern, outcome: str, ran: int = 0, refused: dict[int, int] | None = None
) -> Overflow:
    return Overflow(
        pool=pool,
        warps=shape.warps,
        rounds=shape.rounds,
        spin_us=shape.spin_us,
        requested=shape.children,
        outcome=outcome,
        ran=ran,
        refused=refused or {},
    )


def _try(pool: int, shape: LaunchPattern) -> Overflow:
    gpu = MeasuringGpu()
    if pool != DEFAULT_POOL:
        gpu.set_pool(pool)
    times = LaunchingKernel(gpu).run(shape)
    return _overflow(pool, shape, "ended", len(times.start), dict(times.errors))


if __name__ == "__main__":
    sys.stdout.write(
        msgspec.json.encode(_try(*msgspec.json.decode(sys.argv[1], type=tuple[int, LaunchPattern]))).decode()
    )
