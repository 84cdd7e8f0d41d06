"""Generated mixes of frames and neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from gpusched_env.data.parboil import HOGS, SEEN, UNSEEN, UNSEEN_HOGS, memory_mix, parboil
from gpusched_env.errors import InputError


def parts(mix: dict[str, Any]) -> tuple[set[str], list[str]]:
    """Benchmarks and hogs."""
    names = mix["workload"].removeprefix("parboil(benchmark=").removesuffix(")").split("+")
    processes = [process["name"] for core in mix["neighbours"] for process in core]
    return set(names), [name for name in processes if name != "busy"]


def test_held_out_mixes_have_a_benchmark_and_a_hog_that_no_training_mix_has() -> None:
    for seed in range(200):
        benchmarks, hogs = parts(memory_mix(seed))
        assert benchmarks <= set(SEEN)
        assert set(hogs) <= set(HOGS)
        assert 2 <= len(benchmarks) <= 4
        assert len(hogs) >= 2
        benchmarks, hogs = parts(memory_mix(seed, held_out=True))
        assert benchmarks & set(UNSEEN)
        assert set(hogs) & set(UNSEEN_HOGS)
        assert 2 <= len(benchmarks) <= 4
        assert len(hogs) >= 2


def test_a_seed_is_a_mix() -> None:
    assert memory_mix(3) == memory_mix(3)
    assert memory_mix(3) != memory_mix(4)
    assert memory_mix(3) != memory_mix(3, held_out=True)


def test_frames_have_the_kernels_of_several_benchmarks() -> None:
    both = parboil("parboil(benchmark=bfs+histo)")
    assert both.kernels == (*parboil("parboil(benchmark=bfs)").kernels, *parboil("parboil(benchmark=histo)").kernels)


@pytest.mark.parametrize(("names", "says"), [("bfs+bsf", "did you mean 'bfs'"), ("bfs+bfs", "bfs is there twice")])
def test_wrong_benchmarks_are_refused(names: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parboil(f"parboil(benchmark={names})")
