"""Shortened kernel names stay readable and distinct."""

import pytest

from gpusched_env.workload.importers.build import MAX_LENGTH, short_name


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_bias_TNT", "nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_bias_TNT"),
        (
            "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::Half>, std::array"
            "<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, 3ul>)",
            "vectorized_elementwise_kernel<8, CUDAFunctor_add<Half>, std::array<char*, 3ul> >",
        ),
        (
            "void at::native::(anonymous namespace)::max_pool_forward_nchw<c10::Half, int>(int, c10::Half const*)",
            "max_pool_forward_nchw<Half, int>",
        ),
        (
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)"
            "::{lambda()#3}::operator()() const::{lambda(float)#1}, 4>(int)",
            "unrolled_elementwise_kernel<direct_copy_kernel_cuda(at::TensorIteratorBase&)::lambda3::lambda1(float), 4>",
        ),
        ("void cudnn::k<float, (cudnnKernelDataType_t)2>(float*)", "cudnn::k<float, (cudnnKernelDataType_t)2>"),
    ],
)
def test_readable(full: str, short: str) -> None:
    assert short_name(full) == short


def test_long_names_keep_their_difference() -> None:
    first, second = (short_name(f"void kernel<{'x' * 300}, {n}>(int)") for n in (1, 2))
    assert first != second
    assert max(len(first), len(second)) <= MAX_LENGTH
    assert first.startswith("kernel<xxx")


def test_data_types_of_functors_differ() -> None:
    names = {short_name(f"void k<f()::{{lambda({type_name})#1}}>(int)") for type_name in ("float", "double")}
    assert len(names) == 2
