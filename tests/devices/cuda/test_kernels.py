"""The kernels that stand for recorded ones compile for a GPU that is not there."""

from __future__ import annotations

import pytest

from gpusched_env.devices.cuda.kernels import CHAINS, cubin, registers_of, values_for
from gpusched_env.errors import GpuError
from tests.refusals import refused


@pytest.mark.parametrize("registers", [24, 40, 128, 255])
@pytest.mark.parametrize("chains", CHAINS)
def test_a_kernel_has_as_many_registers_as_the_one_that_it_stands_for(registers: int, chains: int) -> None:
    found = registers_of(cubin(values_for(registers, chains), chains))
    assert registers - 2 <= found <= max(registers, registers_of(cubin(chains, chains)))


def test_no_kernel_has_fewer_registers_than_its_chains_need() -> None:
    least = [registers_of(cubin(values_for(16, chains), chains)) for chains in CHAINS]
    assert least == sorted(least)
    # Registers are given in eights.
    assert max(least[:3]) <= 24
    assert least[3] <= 26


def test_nothing_that_a_thread_computes_or_loads_is_optimised_away() -> None:
    """The loop is there: more values, more machine code."""
    small, large = (len(cubin(values, 1)) for values in (8, 64))
    # A multiply-add is 16 bytes.
    assert large - small >= 56 * 16


@pytest.mark.parametrize("kernel", ["mark", "answer"])
def test_the_other_kernels_are_there(kernel: str) -> None:
    assert 0 < registers_of(cubin(8, 1), kernel) <= 32


def test_a_kernel_that_is_not_there_is_named() -> None:
    with refused(GpuError, "'wrong'", "code"):
        registers_of(cubin(8, 1), "wrong")


def test_source_that_does_not_compile_is_told() -> None:
    with refused(GpuError, "synthetic.cu", "sm_1"):
        cubin(8, 1, "sm_1")
