"""Named tuples of arrays that stay in memory, where compiled functions find them by one number.

Each call from Python takes its arguments apart, an array in a twentieth of a microsecond, a named tuple in one or two.
A call that gets the same dozens of arrays every time takes an address instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic

from gpusched_env.devices.compiled.memory import lines
from gpusched_env.numba_internals import size_of

T = TypeVar("T", bound=NamedTuple)


class Kept(Generic[T]):
    """A named tuple, and where compiled functions find it, as long as this object is held."""

    def __init__(self, value: T, put: Callable[[int, T], None]) -> None:
        """``put``: a compiled function that calls the first of :func:`keeping`."""
        self.value = value
        self._put = put
        self._memory = lines(size_of(typeof(value)))
        self.address = int(self._memory.ctypes.data)
        put(self.address, value)

    def __reduce__(self) -> Any:
        """A copy is of copied arrays, and lies elsewhere."""
        return type(self), (self.value, self._put)


def keeping(kind: types.Type) -> tuple[Any, Any]:
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
