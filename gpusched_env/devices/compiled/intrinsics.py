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


popcount: Any = _popcount
"""Bits set in a uint64, as int64."""
lowest: Any = _lowest
"""Number of the lowest bit set in a uint64 that is not 0, as int64."""
call: Any = _call
"""Call the compiled function at an address, which takes two int64 and returns one: ``call(address, a, b)``."""
call_c: Any = _call_c
"""Call a function of a C library at an address, whose arguments are whole numbers or pointers and which returns an
``int``: ``call_c(address, (a, b, ...))``, all int64. By the ABI of 64-bit systems narrower numbers may be given so."""
