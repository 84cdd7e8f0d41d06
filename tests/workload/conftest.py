"""Shared by the tests of importers."""

import msgspec
import pytest

from gpusched_env.hardware.specs import GpuSpec, load_gpu


@pytest.fixture
def gpu() -> GpuSpec:
    """An H100 with latencies that are easy to add up."""
    spec = load_gpu("h100-sxm")
    timing = msgspec.structs.replace(spec.timing, launch_latency_us=2.0, stream_gap_us=1.0, sync_latency_us=3.0)
    return msgspec.structs.replace(spec, timing=timing)
