"""How text that both devices share reads the records of the compiled one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import overload


def on_records(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile calls of an access function of an interpreter that both devices share as calls of the decorated one."""

    def decorate(implementation: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*types: Any) -> Any:
            return implementation

        # Numba compares the names of arguments.
        chosen.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
        options: Any = {"_nrt": False, "forceinline": True}
        overload(function, jit_options=options)(chosen)
        return implementation

    return decorate
