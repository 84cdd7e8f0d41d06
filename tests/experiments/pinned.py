"""Episodes that the tests of the fuzzer name, as they were drawn once (seed 0): what is drawn may change."""

from __future__ import annotations

import dataclasses
import functools
import gzip
from pathlib import Path

import msgspec

from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.experiments.fuzz.run import KERNELS

FILE = Path(__file__).parent / "fuzz_cases.json.gz"


@functools.cache
def pinned_cases() -> dict[int, Case]:
    """By number."""
    return msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=dict[int, Case])


PINNED = dataclasses.replace(KERNELS, draw=lambda seed, episode: pinned_cases()[episode])
"""The fuzzer, on those."""
