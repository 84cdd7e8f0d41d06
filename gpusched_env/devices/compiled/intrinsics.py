"""Machine operations that Numba has no names for: bits, calls by address, atomic words, a pause, and the system's
locks.

Every atomic operation is sequentially consistent: all threads see them in one order. Whatever a thread wrote before
one of them is seen by a thread that has seen it.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpusched_env.numba_internals import cgutils


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


ORDER = "seq_cst"
PAUSES = {"x86_64": ("llvm.x86.sse2.pause", ()), "AMD64": ("llvm.x86.sse2.pause", ())} | dict.fromkeys(
    ("aarch64", "arm64"), ("llvm.aarch64.hint", (1,))
)
"""The instruction that tells a processor of a loop that waits, with its operands, by the name of the machine."""


def _pointer(builder: ir.IRBuilder, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


@intrinsic
def _atomic_add(typingctx: Any, address: Any, value: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(builder, args[0]), args[1], ORDER)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _atomic_load(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(builder, args[0]), ORDER, 8)

    return types.int64(types.int64), codegen


@intrinsic
def _atomic_store(typingctx: Any, address: Any, value: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _pointer(builder, args[0]), ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def _pause(typingctx: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        if platform.machine() in PAUSES:
            name, operands = PAUSES[platform.machine()]
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [word] * len(operands))
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [ir.Constant(word, operand) for operand in operands])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _copy_bytes(typingctx: Any, target: Any, source: Any, count: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        target_at, source_at = (builder.inttoptr(at, byte) for at in args[:2])
        cgutils.raw_memcpy(builder, target_at, source_at, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def _fetch(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        # To read, to be kept in all caches, data.
        builder.call(function, [builder.inttoptr(args[0], byte), *(ir.Constant(number, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


atomic_add: Any = _atomic_add
"""Add to the int64 at an address; gives what was there before."""
atomic_load: Any = _atomic_load
"""The int64 at an address."""
atomic_store: Any = _atomic_store
"""Write the int64 at an address."""
pause: Any = _pause
"""Let the processor rest for a few cycles, in a loop that waits for another thread."""
fetch: Any = _fetch
"""Have the cache line of an address brought from memory, without waiting for it; any address will do."""
copy_bytes: Any = _copy_bytes
"""Copy so many bytes to an address from another: ``copy_bytes(target, source, count)``; they do not overlap."""

# POSIX threads, by address. All return 0 unless they are used wrongly.
_by_address = types.int32(types.int64)
_by_addresses = types.int32(types.int64, types.int64)
mutex_init: Any = types.ExternalFunction("pthread_mutex_init", _by_addresses)
mutex_lock: Any = types.ExternalFunction("pthread_mutex_lock", _by_address)
mutex_unlock: Any = types.ExternalFunction("pthread_mutex_unlock", _by_address)
condition_init: Any = types.ExternalFunction("pthread_cond_init", _by_addresses)
condition_wait: Any = types.ExternalFunction("pthread_cond_wait", _by_addresses)
condition_broadcast: Any = types.ExternalFunction("pthread_cond_broadcast", _by_address)
