"""Serving engines on silicon: parts of a step, and small engines that were solved by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.language_models import MODELS, DenseModel, Matrix, model_of
from gpusched_env.experiments.papers import peers
from gpusched_env.experiments.papers.time_per_token import Paper
from gpusched_env.experiments.papers.time_per_token.serving import EngineModel, EngineRequest, served, time_per_token_us
from gpusched_env.experiments.papers.time_per_token.silicon import SiliconServed, SiliconTimes, read_rows
from gpusched_env.experiments.papers.time_per_token.steps import (
    Chunk,
    EngineStep,
    Formats,
    Layers,
    product_costs,
    reached_bytes_per_us,
    recorded,
)
from gpusched_env.hardware.specs import load_gpu
from tests.refusals import refused

LLAMA = Layers(MODELS["llama-3.1-8b"], load_gpu("h100-sxm"), Formats(2, 2))


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama-3.1-8b", 8.03), ("llama-3.1-70b", 70.55), ("qwen3-8b", 8.19), ("qwen3-14b", 14.77), ("qwen3-32b", 32.76)],
)
def test_models_have_as_many_weights_as_is_published(name: str, billions: float) -> None:
    assert MODELS[name].weight_bytes(2) / 2e9 == pytest.approx(billions, rel=1e-3)


def test_a_model_is_found_by_the_path_of_its_checkpoint() -> None:
    assert model_of("nvidia/Llama-3.1-8B-Instruct-FP8") is MODELS["llama-3.1-8b"]
    assert model_of("Qwen/Qwen3-235B-A22B-FP8") is None


def test_a_product_of_one_token_takes_its_start_and_the_reading_of_the_weights() -> None:
    read_us = 2 * 28672 * 4096 / (3_350_000 * 0.94)
    assert LLAMA.product_us(1, Matrix(28672, 4096), 2) == pytest.approx(recorded().costs.block_us + read_us)


def test_a_long_product_goes_as_fast_as_the_fastest_that_was_measured_at_most() -> None:
    operations = 2 * 65_536 * 28_672 * 65_536
    for element_bytes, tflops in ((2, 794.5), (1, 1402.6)):
        us = LLAMA.product_us(65_536, Matrix(28_672, 65_536), element_bytes)
        assert 0.97 * tflops < operations / us * 1e-6 <= tflops


def test_another_cached_token_takes_the_reading_of_its_bytes() -> None:
    more, fewer = (LLAMA.step_us(EngineStep(running=8, cached=cached)) for cached in (9000, 8000))
    bytes_ = 1000 * LLAMA.model.layers * LLAMA.model.cache_elements * 2
    assert more - fewer == pytest.approx(bytes_ / reached_bytes_per_us(load_gpu("h100-sxm")))


def test_a_prompt_in_two_chunks_has_the_scores_of_the_whole() -> None:
    assert Chunk(1).scores == 1
    assert Chunk(300).scores + Chunk(700, before=300).scores == Chunk(1000).scores


def test_kernels_that_convert_and_norm_are_parts_of_a_layer() -> None:
    step, plain = EngineStep(running=1, cached=100), MODELS["qwen3-32b"]
    small_us = recorded().costs.small_us + load_gpu("h100-sxm").timing.graph_gap_us
    normed, bare = (
        Layers(model, load_gpu("h100-sxm"), Formats(2, 2)).step_us(step)
        for model in (plain, replace(plain, head_norms=False))
    )
    assert normed - bare == pytest.approx(64 * 2 * small_us, rel=0.01)


def test_products_need_matrix_rates() -> None:
    unknown = msgspec.structs.replace(load_gpu("h100-sxm"), name="mine", matrix_rates=None)
    with refused(InputError, "mine: has no matrix_rates"):
        product_costs(recorded().costs, load_gpu(recorded().gpu), unknown, 2)


def by_tokens(step: EngineStep) -> float:
    """A microsecond for each token of a prompt, ten for a decode."""
    return sum(chunk.tokens for chunk in step.chunks) + (10.0 if step.running else 0.0)


def engine(
    *, mixed: bool = True, reserves: bool = True, step_tokens: int = 64, cache_tokens: int = 1000
) -> EngineModel:
    return EngineModel(mixed, reserves, step_tokens, cache_tokens, most=8)


def test_a_client_alone_never_waits_for_a_prompt() -> None:
    assert time_per_token_us(1, 100, 5, engine(cache_tokens=105), by_tokens) == 10.0


@pytest.mark.parametrize("mixed", [True, False])
def test_clients_whose_prompts_fit_into_a_step_go_together(mixed: bool) -> None:
    assert time_per_token_us(2, 32, 5, engine(mixed=mixed), by_tokens) == 10.0


def test_a_token_waits_for_the_prompts_of_others() -> None:
    # Separate, both prompts come first, and both answers end together: one client waits for the other's prompt, 100,
    # the other for none. Mixed, one is a step behind: its prompt comes with the other's token, and delays four.
    apart = time_per_token_us(2, 100, 5, engine(mixed=False, step_tokens=100), by_tokens)
    assert apart == ((100.0 + 40.0) / 4 + 40.0 / 4) / 2
    assert time_per_token_us(2, 100, 5, engine(step_tokens=101), by_tokens) == (100.0 + 40.0) / 4


def test_a_cache_for_one_request_serves_one_client_at_a_time() -> None:
    assert time_per_token_us(8, 100, 5, engine(step_tokens=1000, cache_tokens=209), by_tokens) == 10.0


def test_a_full_cache_takes_the_place_of_the_newest_request() -> None:
    # Both fit with two tokens each. The second then gives its 12 places back; its prompt and its two tokens are read
    # anew, which takes 12 and makes its third, when the first one has its fourth and last one.
    two = [EngineRequest(0.0, 10, 4), EngineRequest(0.0, 10, 4)]
    first, second = served(two, engine(reserves=False, cache_tokens=22), by_tokens)
    assert first == (two[0], 20.0, 20.0 + 3 * 10.0)
    assert second == (two[1], 20.0, first.last_us + 12.0 + 10.0)
    reserved = served(two, engine(cache_tokens=22), by_tokens)
    assert [one.last_us for one in reserved] == [10.0 + 30.0, 40.0 + 40.0]


def test_an_engine_waits_for_arrivals() -> None:
    (late,) = served([EngineRequest(500.0, 10, 1)], engine(), by_tokens)
    assert late == (EngineRequest(500.0, 10, 1), 510.0, 510.0)
    assert late.token_us == 0.0


def test_a_model_that_does_not_fit_is_refused() -> None:
    row = next(row for row in read_rows() if model_of(row.model_path) and "70B" in row.model_path)
    with refused(InputError, "70B on h100_sxm: beside the weights no request fits"):
        _ = SiliconServed(msgspec.structs.replace(row, system="h100_sxm", format="")).engine


def test_a_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("backend,model_path\nvllm,\n")
    with refused(InputError, "rows.csv, line 2"):
        read_rows(path)


def test_rows_that_are_faster_than_the_roofline_are_counted_and_named() -> None:
    cells = Paper.cells()[:2]
    assert all(isinstance(cell, SiliconServed) for cell in cells)
    shares = dict(zip(cells, (0.5, 2.0), strict=True))
    paper = Paper(
        {cell: SiliconTimes(1.1 * cell.row.token_ms, of * cell.row.token_ms, 1.0) for cell, of in shares.items()}
    )
    assert paper.median() == pytest.approx(0.1)
    assert paper.outcome().startswith("1 of these rows")


def test_matrices_of_a_layer() -> None:
    assert DenseModel(1, 2, 1, 1, 2, 3, 5).products == (Matrix(6, 2), Matrix(2, 2), Matrix(6, 2), Matrix(2, 3))


def test_the_log_of_an_engine_is_read_with_its_means() -> None:
    answered = peers.logged(peers.FOLDER / "vllm_rtx-4090.csv")
    assert len(answered) == 300
    # LLMServingSim's summary of the same run, without what lay between the clocks of client and engine.
    means = peers.Means.of(answered)
    assert means.token_ms == pytest.approx(32.4, abs=0.1)
    assert means.latency_ms == pytest.approx(86_578.3, rel=0.002)


def test_the_page_of_peers_names_all_of_them() -> None:
    board = peers.Replayed("rtx-4090", 256)
    paper = peers.Paper(
        {
            board: peers.PeerOutcome(*[peers.Means(1.0, 2.0, 3.0)] * 3),
            **{cell: SiliconTimes(1.0, 1.0, 1.0) for cell in Paper.cells()[:1]},
        }
    )
    assert [check.holds for check in paper.checks()] == [True] * 3
    page = paper.markdown()
    assert peers.OnSms(32).run("") > 1.05 * peers.OnSms(132).run("")
    assert all(name in page for name in ("Vidur", "LLMServingSim", "NeuSight", "Accel-Sim", "spark-sched-sim"))
