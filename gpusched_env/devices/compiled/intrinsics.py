"""Machine operations that Numba has no names for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def _popcount(typingctx: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def _lowest(typingctx: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def _call(typingctx: Any, function: Any, first: Any, second: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word, word])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def _call_c(typingctx: Any, function: Any, given: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.IntType(32), [word] * len(given))
        words = [builder.extract_value(args[1], number) for number in range(len(given))]
        status = builder.call(builder.inttoptr(args[0], kind.as_pointer()), words)
        return builder.sext(status, word)

    return types.int64(types.int64, given), codegen


@intrinsic
def _store(typingctx: Any, address: Any, table: Any, values: Any, most: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        def put(place: Any, value: Any) -> None:
            where = builder.add(args[0], builder.mul(place, ir.Constant(word, 8)))
            builder.store(value, builder.inttoptr(where, value.type.as_pointer()))

        word = ir.IntType(64)
        put(ir.Constant(word, 0), context.cast(builder, args[1], table, types.int64))
        whole = floats = 0
        for number, kind in enumerate(values):
            value = builder.extract_value(args[2], number)
            if isinstance(kind, types.Float):
                put(builder.add(args[3], ir.Constant(word, 1 + floats)), value)
                floats += 1
            else:
                whole += 1
                put(ir.Constant(word, whole), context.cast(builder, value, kind, types.int64))
        return context.get_dummy_value()

    return types.void(types.int64, table, values, types.int64), codegen


popcount: Any = _popcount
"""Bits set in a uint64, as int64."""
lowest: Any = _lowest
"""Number of the lowest bit set in a uint64 that is not 0, as int64."""
store: Any = _store
"""Fill a row of 8-byte cells at an address, ``store(address, table, values, most)``: ``table``, the whole numbers in
the tuple ``values``, and its floats (float64) behind ``most`` whole ones."""
call: Any = _call
"""Call the compiled function at an address, which takes two int64 and returns one: ``call(address, a, b)``."""
call_c: Any = _call_c
"""Call a function of a C library at an address, whose arguments are whole numbers or pointers and which returns an
``int``: ``call_c(address, (a, b, ...))``, all int64. By the ABI of 64-bit systems narrower numbers may be given so."""
