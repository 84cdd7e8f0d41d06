"""CuPy, memory that host and kernels share, and the compiler: it makes kernels with as many registers as recorded
ones, for a GPU that need not be there.
"""

from __future__ import annotations

import functools
import struct
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import GpuError, InputError, needs

SOURCE: Final = "synthetic.cu"
LEAST_REGISTERS: Final = 14
"""Fewest registers that the kernel takes besides its values (sm_90, CUDA 13)."""
CHAINS: Final = (1, 2, 4, 8)
"""Multiply-adds of a thread that may be under way at once."""
REGCOUNT: Final = 0x2F
"""Attribute of a cubin's ``.nv.info``: registers a thread, by kernel."""


@functools.cache
def cubin(values: int, chains: int, arch: str = "sm_90") -> bytes:
    """Machine code of ``synthetic.cu``.

    Args:
        values: that live through its loop, at least ``chains``.
        chains: of :data:`CHAINS`.
        arch: ``sm_90`` for Hopper.

    Raises:
        InputError, GpuError: as :func:`compiled`.
    """
    return compiled(__package__, SOURCE, arch, VALUES=values, CHAINS=chains)


@functools.cache
def compiled(package: str, file: str, arch: str, **macros: int) -> bytes:
    """Machine code of a CUDA source file.

    Args:
        package: in whose folder it lies.
        file: its name.
        arch: ``sm_90`` for Hopper.
        macros: that are set when it is compiled.

    Raises:
        InputError: the extra ``gpu`` is not installed.
        GpuError: it does not compile.
    """
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError:
        raise InputError(needs("a real GPU", "cupy")) from None
    source = resources.files(package).joinpath(file).read_text()
    options = ProgramOptions(arch=arch, define_macro=[(name, str(value)) for name, value in macros.items()] or None)
    try:
        code = Program(source, "c++", options).compile("cubin").code
    except Exception as error:
        raise GpuError(f"{file} does not compile for {arch}: {error}") from error
    return bytes(code)


@functools.cache
def values_for(registers: int, chains: int, arch: str = "sm_90") -> int:
    """How many values give the kernel the most registers a thread that are no more than ``registers``.

    The compiler takes some for itself, how many it does not tell before: found by compiling. At least ``chains``.
    """
    values = max(chains, registers - LEAST_REGISTERS)
    while values > chains:
        excess = registers_of(cubin(values, chains, arch)) - registers
        if excess <= 0:
            break
        values = max(chains, values - excess)
    return values


def registers_of(code: bytes, kernel: str = "synthetic") -> int:
    """Registers a thread of a kernel in a cubin, as its ELF file says."""
    sections = _sections(code)
    symbols, names = sections[".symtab"], sections[".strtab"]
    info = sections[".nv.info"]
    at = 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != 4:
            continue
        if attribute == REGCOUNT:
            symbol, registers = struct.unpack_from("<II", info, at)
            start = struct.unpack_from("<I", symbols, symbol * 24)[0]
            if names[start : names.index(b"\0", start)].decode() == kernel:
                return int(registers)
        at += size
    raise GpuError(f"no kernel {kernel!r} in the machine code")


def _sections(code: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF file, by name."""
    table = struct.unpack_from("<Q", code, 0x28)[0]
    size, count, names_at = struct.unpack_from("<HHH", code, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", code, table + i * size) for i in range(count)]
    texts = heads[names_at][4]
    found = {}
    for head in heads:
        start = texts + head[0]
        # A section without bits in the file (.bss) has a size all the same.
        found[code[start : code.index(b"\0", start)].decode()] = code[head[4] : head[4] + head[5]]
    return found


def open_cupy(work: str) -> Any:
    """The module ``cupy``.

    Args:
        work: what needs it, for the error: ``a real GPU``.

    Raises:
        InputError: CuPy is not installed, or there is no GPU with a driver.
    """
    try:
        import cupy
    except ImportError:
        raise InputError(needs(work, "cupy")) from None
    if not cupy.is_available():
        raise InputError(f"there is no NVIDIA GPU with its driver in this machine; {work} needs one")
    return cupy


def shared_numbers(cupy: Any, count: int) -> tuple[NDArray[np.uint64], int]:
    """Zeros of 8 bytes, and the address that they have on both sides."""
    memory = cupy.cuda.alloc_pinned_memory(8 * count)
    array = np.frombuffer(memory, np.uint64, count)
    array[:] = 0
    return array, int(memory.ptr)
