"""Records at addresses: how compiled functions reach the state of an environment, and named tuples of arrays that stay
in memory.

The state of an environment is one block of memory; its first record holds the addresses of the others. So a
function takes one pointer instead of two dozen arrays, which makes calls and compilation cheap, and every
environment, of whatever size, is found by one number. Addresses are computed in
:mod:`~gpusched_env.devices.compiled.arena` and nowhere else.

Nothing checks an index, except in a build for it (:data:`gpusched_env.compiling.CHECK_INDICES`). There a line of memory
before each table says how long it is, and compiled code ends the process at the first index outside of it, with the
name of the table: going on would mean to write into another one.

Each call from Python takes its arguments apart, an array in a twentieth of a microsecond, a named tuple in one or two.
A call that gets the same dozens of arrays every time takes an address instead.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import from_dtype, typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gpusched_env.compiling import CHECK_INDICES
from gpusched_env.numba_internals import array_at, cgutils, size_of

LINE: Final = 64
"""Bytes of a cache line."""
HEADER: Final = LINE if CHECK_INDICES else 0
"""Bytes before each table. Their last two words are :data:`TABLE` and the table's length in bytes."""
TABLE: Final = 0x5AFE_7AB1E
WORD: Final = ir.IntType(64)


def lines(size: int) -> NDArray[np.uint8]:
    """Zero bytes, so many, from the beginning of a cache line.

    They are a mapping of their own: what is never written to takes no memory, and all of it is given back in the end.
    """
    memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, np.uint8, size)


def placed(memory: NDArray[np.uint8], dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    """A table at the beginning of ``memory``, behind its header."""
    size = dtype.itemsize * length
    if HEADER:
        memory[HEADER - 16 : HEADER].view(np.int64)[:] = TABLE, size
    return memory[HEADER : HEADER + size].view(dtype)


def in_lines(table: NDArray[Any]) -> NDArray[Any]:
    """A copy of a table of its own that compiled code can reach, from the beginning of a cache line."""
    aligned = placed(lines(HEADER + table.nbytes), table.dtype, len(table))
    aligned[:] = table
    return aligned


def records(dtype: np.dtype[Any], name: str = "") -> Any:
    """A compiled function ``(address, index)`` that gives a record of the table ``name`` at an address.

    Without a name the address may be any within a table (see :func:`places`), and the index is never checked.
    """
    record = from_dtype(dtype)

    @intrinsic
    def at(typingctx: Any, address: Any, index: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            _check(builder, args[0], args[1], ir.Constant(WORD, 1), dtype, name)
            place = builder.add(args[0], builder.mul(args[1], ir.Constant(WORD, dtype.itemsize)))
            return builder.inttoptr(place, context.get_value_type(record))

        return record(types.int64, types.int64), codegen

    return at


def places(dtype: np.dtype[Any], name: str) -> Any:
    """A compiled function ``(address, first, count)``: the address of the first of ``count`` records of a table."""

    @intrinsic
    def at(typingctx: Any, address: Any, first: Any, count: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            _check(builder, args[0], args[1], args[2], dtype, name)
            return builder.add(args[0], builder.mul(args[1], ir.Constant(WORD, dtype.itemsize)))

        return types.int64(types.int64, types.int64, types.int64), codegen

    return at


def columns(dtype: np.dtype[Any], field: str, name: str) -> Any:
    """A compiled function ``(address, count)`` that gives a field of ``count`` records at an address, as an array."""
    assert dtype.fields is not None
    kind, offset = dtype.fields[field][:2]
    array = types.Array(from_dtype(kind), 1, "A")

    @intrinsic
    def of(typingctx: Any, address: Any, count: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            _check(builder, args[0], ir.Constant(WORD, 0), args[1], dtype, name)
            place = builder.add(args[0], ir.Constant(WORD, offset))
            data = builder.inttoptr(place, context.get_data_type(array.dtype).as_pointer())
            stride, itemsize = ir.Constant(WORD, dtype.itemsize), ir.Constant(WORD, kind.itemsize)
            return array_at(context, builder, array, data, args[1], stride, itemsize)

        return array(types.int64, types.int64), codegen

    return of


def _check(builder: ir.IRBuilder, address: Any, first: Any, count: Any, dtype: np.dtype[Any], name: str) -> None:
    """End the process where ``count`` records from number ``first`` on are not in the table; in builds that check."""
    if not HEADER or not name:
        return
    mark, size = (
        builder.load(builder.inttoptr(builder.sub(address, ir.Constant(WORD, before)), WORD.as_pointer()))
        for before in (16, 8)
    )
    length = builder.sdiv(size, ir.Constant(WORD, dtype.itemsize))
    conditions = (
        builder.icmp_signed("!=", mark, ir.Constant(WORD, TABLE)),
        builder.icmp_signed("<", first, ir.Constant(WORD, 0)),
        builder.icmp_signed("<", count, ir.Constant(WORD, 0)),
        builder.icmp_signed(">", builder.add(first, count), length),
    )
    wrong = conditions[0]
    for condition in conditions[1:]:
        wrong = builder.or_(wrong, condition)
    with builder.if_then(wrong, likely=False):
        text = f"gpusched: index %ld (%ld records) is outside of the %ld records of {name!r}\n\0".encode()
        message = cgutils.global_constant(builder, "gpusched_index", cgutils.make_bytearray(text))
        byte = ir.IntType(8).as_pointer()
        print_ = ir.FunctionType(ir.IntType(32), [ir.IntType(32), byte], var_arg=True)
        on_stderr = [ir.Constant(ir.IntType(32), 2), builder.bitcast(message, byte), first, count, length]
        builder.call(cgutils.get_or_insert_function(builder.module, print_, "dprintf"), on_stderr)
        ends = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, ends, "abort"), [])


T = TypeVar("T", bound=NamedTuple)


class Kept(Generic[T]):
    """A named tuple, and where compiled functions find it, as long as this object is held."""

    def __init__(self, value: T, put: Callable[[int, T], None]) -> None:
        """Keep a value; ``put``: a compiled function that calls the first of :func:`put_and_get`."""
        self.value = value
        self._put = put
        self._memory = lines(size_of(typeof(value)))
        self.address = int(self._memory.ctypes.data)
        put(self.address, value)

    def __reduce__(self) -> Any:
        """A copy is of copied arrays, and lies elsewhere."""
        return type(self), (self.value, self._put)


def put_and_get(kind: types.Type) -> tuple[Any, Any]:
    """Two compiled functions, for values of a type: ``(address, value)`` puts one there, ``(address)`` gives it.

    They neither see nor hold the Python objects that the value comes from.
    """

    @intrinsic
    def put(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            data = context.data_model_manager[kind].as_data(builder, args[1])
            builder.store(data, builder.inttoptr(args[0], data.type.as_pointer()))
            return context.get_dummy_value()

        return types.void(types.int64, kind), codegen

    @intrinsic
    def at(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
            model = context.data_model_manager[kind]
            place = builder.inttoptr(args[0], model.get_data_type().as_pointer())
            return model.load_from_data_pointer(builder, place)

        return kind(types.int64), codegen

    return put, at
