"""What the simulator must beat, on instances that are solved by hand; noise; and skill."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gpusched_env.experiments.lib.recorded import GraphPair
from gpusched_env.experiments.validate.recordings import RecordedScenario, Solo, SyntheticKernel
from gpusched_env.experiments.validate.replay import RecordingReplay
from gpusched_env.experiments.validate.scoring import (
    alone_ends,
    compared,
    constants,
    covered,
    ends_of,
    launches,
    networks_elsewhere,
    of_launches,
    score,
    shared_ends,
    slowdowns,
)
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

SMS = 100


def synthetic(id_: str, grid: int, duration_us: float, **changes: Any) -> SyntheticKernel:
    solo = Solo(duration_us=duration_us, block_us=duration_us, block_us_p95=1.2 * duration_us)
    work: dict[str, Any] = {"block": 256, "smem": 0, "regs": 26, "flop_per_block": 1e7, "dram_bytes_per_block": 0.0}
    return SyntheticKernel(id=id_, grid=grid, solo=solo, **(work | changes))


KERNELS = {of.id: of for of in (synthetic("whole", 500, 100.0), synthetic("half", 50, 40.0))}


def scenario(*streams: tuple[int, float, tuple[str, ...]], measured: tuple[float, ...] = ()) -> RecordedScenario:
    """Streams as (priority, delay, kernels); launches stream by stream."""
    rows = []
    for number, (priority, delay_us, names) in enumerate(streams):
        for i, name in enumerate(names):
            row = {"stream": number, "priority": priority, "delay_us": None if i else delay_us, "kernel": name}
            rows.append(row)
    ends = measured or (1.0,) * len(rows)
    data = {
        "id": "x0",
        "launches": rows,
        "measured": [{"start_us": 0.0, "end_us": end} for end in ends],
        "end_min_max_us": [(0.9 * end, 1.2 * end) for end in ends],
    }
    return msgspec.convert(data, RecordedScenario)


def test_alone_a_stream_takes_its_kernels_times_and_gaps() -> None:
    """A flag takes 4 us to be seen; kernels of a stream are 2.05 us apart."""
    assert alone_ends(scenario((0, 10.0, ("whole", "half"))), KERNELS) == [(14.0, 114.0), (14.0, pytest.approx(156.05))]


def test_equals_share_sms_in_proportion_where_they_are_too_few() -> None:
    """500 blocks cover all 100 SMs, 50 half of them: both run at two thirds, until the half is done after 60 us."""
    together = scenario((0, 10.0, ("whole",)), (0, 10.0, ("half",)))
    # The second stream starts 0.55 us later; until then the first is alone.
    whole, half = shared_ends(together, KERNELS, SMS)
    assert half == pytest.approx(14.55 + 60.0)
    assert whole == pytest.approx(14.0 + 100.0 + 20.0), "it lost a third of 60 us"


def test_what_fits_beside_is_not_slowed() -> None:
    assert shared_ends(scenario((0, 0.0, ("half",)), (0, 0.0, ("half",))), KERNELS, SMS) == pytest.approx([44.0, 44.55])


def test_the_urgent_go_first() -> None:
    """The urgent half leaves half of the SMs: the whole runs at half its speed for 40 us."""
    whole, half = shared_ends(scenario((0, 0.0, ("whole",)), (-5, 0.0, ("half",))), KERNELS, SMS)
    assert half == pytest.approx(44.55)
    assert whole == pytest.approx(4.0 + 100.0 + 20.0)


def workload(*kernels: tuple[int, float]) -> Workload:
    """Kernels as (blocks, us)."""
    shapes = tuple(
        Kernel(name=f"k{i}", grid=(blocks, 1, 1), block=(64, 1, 1), registers=16, duration_us=us)
        for i, (blocks, us) in enumerate(kernels)
    )
    ops = tuple(Op(OpKind.KERNEL, 1.0, i, us) for i, (_, us) in enumerate(kernels))
    return Workload(
        name="net", gpu="h100-sxm", source="by hand", kernels=shapes, variants=(Variant(ops=ops),), iteration_us=(1.0,)
    )


def test_a_network_covers_sms_for_shares_of_its_time() -> None:
    found = covered(workload((50, 30.0), (1000, 60.0)), 100.0, SMS)
    assert found[[0, 50, 100]] == pytest.approx([0.1, 0.3, 0.6])
    assert found.sum() == pytest.approx(1.0)


def test_slowdowns_by_shares_of_sms() -> None:
    """One that covers all SMs, beside one that covers half of them for half of its time and else none."""
    whole, half = np.zeros(SMS + 1), np.zeros(SMS + 1)
    whole[100], half[[0, 50]] = 1.0, 0.5
    first, second = slowdowns(whole, half, SMS, urgent=False)
    assert first == pytest.approx(1.0 / (0.5 + 0.5 * 2 / 3))
    assert second == pytest.approx(0.5 + 0.5 * 1.5)
    urgent, other = slowdowns(half, whole, SMS, urgent=True)
    assert urgent == 1.0
    assert other == pytest.approx(1.0 / (0.5 + 0.5 * 0.5))
    assert slowdowns(whole, whole, SMS, urgent=True) == (1.0, np.inf)


def test_the_constant_is_the_median_of_the_mode() -> None:
    def pair(mode: str, fg_us: float, bg_us: float) -> GraphPair:
        return GraphPair(mode=mode, fg="a", bg="b", fg_p50_us=fg_us, bg_p50_us=bg_us, fg_solo_us=10.0, bg_solo_us=10.0)

    pairs = [pair("streams", fg_us, 11.0) for fg_us in (20.0, 30.0, 50.0)] + [pair("priority", 12.0, 40.0)]
    assert constants(pairs) == [(3.0, 1.1)] * 3 + [(1.2, 4.0)]


def test_skill_is_what_the_median_error_is_below_the_rival_s() -> None:
    found = compared(np.array([0.1, -0.1, 0.2]), {"constant": np.array([0.4, -0.2, 0.1]), "shares": np.array([0.05])})
    assert found["constant"]["skill"] == pytest.approx(0.5)
    assert found["shares"]["skill"] == pytest.approx(-1.0)


def test_launches_of_other_urgency_are_stretched_otherwise() -> None:
    """Alone 100 us from 4 us on; measured twice and four times as long: the constants are exact."""
    row = scenario((0, 0.0, ("whole",)), (-5, 0.0, ("whole",)), measured=(204.0, 404.55))
    found = launches({"pairs": [(row, np.array([[4.0, 102.0], [4.55, 404.55]]))]})
    skill = of_launches(found.join(ends_of({"pairs": [row]}, KERNELS, SMS)))
    assert skill["constant"]["median"] == pytest.approx(0.0)
    assert skill["simulator"]["median"] == pytest.approx(0.25)


def test_noise_is_a_band_a_launch() -> None:
    """Ends of repetitions reach from 90 to 120 of 100 us."""
    row = scenario(*((0, 0.0, ("half",)),) * 3, measured=(100.0, 100.0, 100.0))
    found = launches({"pairs": [(row, np.array([[0.0, 115.0], [0.0, 126.0], [0.0, 80.0]]))]})
    assert found.noise.tolist() == pytest.approx([0.3] * 3)
    assert found.beyond.tolist() == pytest.approx([0.0, 0.06, 0.1])
    figures = score(found)
    assert figures is not None
    assert figures["within_noise"] == pytest.approx(1 / 3)
    assert figures["n"] == 3, "none is left out"


def test_a_prediction_is_the_mean_over_draws_of_the_spread() -> None:
    kernels = {"loads": synthetic("loads", 2000, 100.0, dram_bytes_per_block=1e5)}
    row = scenario((0, 0.0, ("loads",)), (0, 0.0, ("loads",)))
    replay = RecordingReplay(kernels, load_gpu("h100-sxm"), draws=1)
    one, two = (dataclasses.replace(replay, draws=draws).predict(row) for draws in (1, 2))
    assert not np.array_equal(one, two)
    assert two == pytest.approx(one, rel=0.1)
    assert two == pytest.approx((replay.drawn(row, 0) + replay.drawn(row, 1)) / 2.0)
    plain = dataclasses.replace(replay, spread=False)
    assert plain.drawn(row, 3) == pytest.approx(plain.drawn(row, 0)), "a draw changes nothing but the spread"


def test_networks_of_other_recordings_are_not_new() -> None:
    known = networks_elsewhere(Path("elsewhere"))
    assert {"resnet50_infer_b1", "squeezenet_infer_b1", "swin_t_infer_b1"} <= known
    data = Path(__file__).parents[2] / "gpusched_env/data/measurements/h100/unseen_networks"
    assert "squeezenet_infer_b1" not in networks_elsewhere(data)
