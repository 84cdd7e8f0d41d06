"""The law of products, and chains of products in all their forms."""

from __future__ import annotations

import json
import math
import statistics
from importlib import resources
from itertools import pairwise

import pytest

from gpusched_env.data.products import ProductSize, costs_on, divided, forms_of, product_chain, ways
from gpusched_env.errors import InputError
from gpusched_env.experiments.calibrate.products import GPUS, errors, measured
from gpusched_env.hardware.solo import Product, ProductCosts, product_block_us, product_us
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import load_workload
from tests.refusals import refused

SIMPLE = ProductCosts(block_us=2.0, step_us=1e-3, beside_us=2e-3, load_us=0.0, dram_us=0.0, slice_us=5.0)


def test_a_product_takes_its_waves_and_the_last_one_with_what_is_left() -> None:
    """Tiles of 10 x 10, ten steps each: a block takes 2 + 1 us, beside another 2 + 3 us. Ten of them on three SMs of
    two: a whole wave, and four blocks, two on an SM. Seven: one is alone."""
    ten = Product(10, 10, 5, 2, 1, 10.0, 2)
    assert product_block_us(SIMPLE, ten, 1) == pytest.approx(3.0)
    assert product_us(SIMPLE, ten, 3) == pytest.approx(5.0 + 5.0)
    assert product_us(SIMPLE, ten._replace(rows=7, columns=1), 3) == pytest.approx(5.0 + 3.0)
    # Four slices of a quarter of the steps, which add up one after the other.
    sliced = Product(10, 10, 1, 1, 4, 2.5, 2)
    assert product_us(SIMPLE, sliced, 4) == pytest.approx(2.0 + 0.25 + 3 * 5.0)


def test_products_may_be_issued_in_other_forms_than_the_quickest() -> None:
    """Of those that are issued in the quickest one no form is quicker; of the others some are."""

    def slower(name: str) -> list[float]:
        """Of each kernel, by how much its quickest form is quicker."""
        kernels = product_chain(name).kernels
        us = [kernel.duration_us for kernel in kernels]
        return [us[k] - min(us[f] for f in kernel.forms) for k, kernel in enumerate(kernels) if kernel.forms]

    assert max(slower("products(seed=3,count=8)")) <= 0.0
    assert max(slower("products(seed=3,count=8,among=6)")) > 0.0
    with refused(InputError, "among"):
        product_chain("products(seed=3,among=0)")


def test_no_product_is_quicker_than_its_other_matrix_is_read() -> None:
    costs = SIMPLE._replace(dram_us=0.1)
    assert product_us(costs, Product(10, 10, 1, 4, 2, 5.0, 2), 8) == pytest.approx(4 * 10 * 10 * 0.1)


@pytest.mark.parametrize("card", GPUS)
def test_what_the_file_says_of_the_error_is_so(card: str) -> None:
    text = (resources.files("gpusched_env.data") / "calibration" / "products.json").read_text(encoding="utf-8")
    told, rows = json.loads(text)[GPUS[card]], measured(card)
    off = sorted(abs(math.expm1(error)) for error in errors(costs_on(GPUS[card]), rows, load_gpu(GPUS[card]).sms))
    assert told["rows"] == len(rows)
    assert told["error"]["median"] == pytest.approx(statistics.median(off), abs=1e-4)
    assert told["error"]["p90"] == pytest.approx(off[int(0.9 * len(off))], abs=1e-4)
    assert told["error"]["median"] < 0.04


def test_forms_do_the_same_work_in_smaller_tiles_or_other_slices() -> None:
    gpu, size = load_gpu("v100-sxm"), ProductSize(1024, 6144, 4096)
    tile, own = ways(size, gpu)[0]
    forms = forms_of(size, gpu, (tile, own.slices))
    assert 1 <= len(forms) <= 3
    assert own not in forms
    assert all(form.duration_us >= own.duration_us for form in forms)
    whole = divided(size, (256, 256), 1, gpu.name)
    assert (whole.rows, whole.columns, whole.per_sm) == (4, 24, 1)
    assert divided(size, (128, 128), 2, gpu.name)[2:] == (8, 48, 2, 2048.0, 2)


def test_chains_are_the_same_in_every_process_and_their_forms_fit() -> None:
    work = product_chain("products(seed=3,count=4)")
    assert work == load_workload(" products(seed=3,count=4) ")
    launched = [op.index for variant in work.variants for op in variant.ops if op.index >= 0 and op.duration_us > 0]
    assert any(work.kernels[row].forms for row in launched)
    for row in launched:
        heights = {work.kernels[row].grid[1], *(work.kernels[form].grid[1] for form in work.kernels[row].forms)}
        assert all(big % small == 0 for small, big in pairwise(sorted(heights)))


def test_bad_names_are_refused() -> None:
    with refused(InputError, "products"):
        product_chain("products(kind=3)")
    with refused(InputError, "v100-sxm, a100-sxm", "measured"):
        product_chain("products(seed=3,gpu=h100-sxm)")
    assert not any(kernel.forms for kernel in load_workload("mlp(model=gpt3_v100,tokens=1024)").kernels)
    assert all(kernel.forms for kernel in load_workload("mlp(model=gpt3_v100,tokens=1024,forms=true)").kernels[:2])
