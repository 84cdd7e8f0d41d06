"""Records at addresses: how compiled functions reach the state of an environment.

The state of an environment is one block of memory; its first record holds the addresses of the others. So a
function takes one pointer instead of two dozen arrays, which makes calls and compilation cheap, and every
environment, of whatever size, is found by one number. Addresses are computed in
:mod:`~gpusched_env.devices.compiled.arena` and nowhere else.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numpy.typing import NDArray

LINE: Final = 64
"""Bytes of a cache line."""


def lines(size: int) -> NDArray[np.uint8]:
    """So many zero bytes, from the beginning of a cache line."""
    memory = np.zeros(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size]


def records(dtype: np.dtype[Any]) -> Any:
    """A compiled function ``(address, index)`` that gives the record number ``index`` of an array at an address."""
    record = from_dtype(dtype)

    @intrinsic
    def at(typingctx: Any, address: Any, index: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            size = ir.Constant(ir.IntType(64), dtype.itemsize)
            place = builder.add(args[0], builder.mul(args[1], size))
            return builder.inttoptr(place, context.get_value_type(record))

        return record(types.int64, types.int64), codegen

    return at


def columns(dtype: np.dtype[Any], field: str) -> Any:
    """A compiled function ``(address, count)`` that gives a field of ``count`` records at an address, as an array."""
    assert dtype.fields is not None
    kind, offset = dtype.fields[field][:2]
    array = types.Array(from_dtype(kind), 1, "A")

    @intrinsic
    def of(typingctx: Any, address: Any, count: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            made = make_array(array)(context, builder)
            place = builder.add(args[0], ir.Constant(word, offset))
            populate_array(
                made,
                data=builder.inttoptr(place, context.get_data_type(array.dtype).as_pointer()),
                shape=[args[1]],
                strides=[ir.Constant(word, dtype.itemsize)],
                itemsize=ir.Constant(word, kind.itemsize),
                meminfo=None,
            )
            return made._getvalue()

        return array(types.int64, types.int64), codegen

    return of
