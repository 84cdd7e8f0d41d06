"""Whether two environments gave the same."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_same(got: Any, expected: Any, tolerance: float, where: str = "") -> None:
    """Equal structures, types, shapes and dtypes; equal values, or ``tolerance`` apart (relative and absolute)."""
    assert isinstance(got, dict) is isinstance(expected, dict), where
    if isinstance(got, dict):
        assert got.keys() == expected.keys(), where
        for key in got:
            assert_same(got[key], expected[key], tolerance, f"{where}.{key}")
    elif isinstance(got, tuple):
        assert len(got) == len(expected), where
        for part, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_same(one, other, tolerance, f"{where}[{part}]")
    elif isinstance(got, np.ndarray):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype), where
        if got.dtype == object:
            assert_same(tuple(got), tuple(expected), tolerance, where)
        elif tolerance:
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=where)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=where)
    else:
        assert got == expected, where
