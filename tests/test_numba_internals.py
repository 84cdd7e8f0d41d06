"""What is assumed of Numba beyond its documentation holds for the version that is installed.

Functions that only compiled functions call are compiled once, and end up in those that Python calls.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.extending import intrinsic

import gpusched_env
from gpusched_env.compiling import called, law
from gpusched_env.numba_internals import (
    TESTED,
    FunctionCache,
    WholeCompiler,
    array_at,
    as_bytes,
    cache_folders,
    callback,
    cgutils,
    check_version,
    event,
    from_bytes,
    holds_addresses,
    keep_in,
    size_of,
    types_key,
)


@law
def doubled(number: float) -> float:
    """A law: also a function of Python."""
    return 2.0 * number


@called
def below(number: Any) -> Any:
    """Calls nothing that its callers do not call as well."""
    return doubled(number) + 1.0


@called
def shared(number: Any) -> Any:
    """Reached by two ways, of which one is longer."""
    return below(number) * 10.0


@called
def total(numbers: Any) -> Any:
    """Of an array."""
    found = 0.0
    for number in numbers[1:]:
        found += shared(number) + below(number)
    return found


NUMBERS = np.array([100.0, 1.0, 2.0])
EXPECTED = (3.0 * 10.0 + 3.0) + (5.0 * 10.0 + 5.0)


def test_a_whole_computes_what_its_parts_say() -> None:
    whole = njit(pipeline_class=WholeCompiler)(lambda numbers: total(numbers) + doubled(numbers[0]))
    assert whole(NUMBERS) == EXPECTED + 200.0


def test_functions_compiled_by_numbas_own_rules_can_call_parts() -> None:
    plain = njit(lambda numbers: total(numbers))
    assert plain(NUMBERS) == EXPECTED


def test_a_part_stays_the_same_for_a_second_caller() -> None:
    first = njit(pipeline_class=WholeCompiler)(lambda number: shared(number))
    second = njit(pipeline_class=WholeCompiler)(lambda number: shared(number) - below(number))
    assert first(1.0) == 30.0
    compiled = [*shared.overloads.values()]  # type: ignore[attr-defined]
    assert second(1.0) == 27.0
    assert [*shared.overloads.values()] == compiled, "compiled once more"  # type: ignore[attr-defined]


def test_python_runs_the_text_of_a_part() -> None:
    assert total(NUMBERS) == EXPECTED


def test_a_part_is_compiled_once_for_integers_of_all_widths() -> None:
    @called
    def next_one(number: Any) -> Any:
        return number + 1

    whole = njit(pipeline_class=WholeCompiler)(lambda n, m: next_one(n) + next_one(m) + next_one(1))
    assert whole(np.int32(2), np.int64(3)) == 9
    assert len(next_one.overloads) == 1  # type: ignore[attr-defined]


PACKAGE = Path(gpusched_env.__file__).parent


@pytest.mark.parametrize("version", ["0.67.0", "0.69.0rc1", "1.0"])
def test_other_versions_are_refused_in_a_sentence(version: str) -> None:
    with pytest.raises(ImportError, match=rf"numba {version} is installed.*pip install 'numba>=0.68,<0.69'"):
        check_version(version)


def test_the_installation_asks_for_the_versions_that_were_tested() -> None:
    declared = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]["dependencies"]
    (numba_range,) = (text for text in declared if text.startswith("numba"))
    assert [tuple(map(int, v)) for v in re.findall(r"(\d+)\.(\d+)", numba_range)] == list(TESTED)


def test_nothing_else_imports_what_numba_does_not_document() -> None:
    found = set()
    folders = [folder for folder in PACKAGE.iterdir() if folder.is_dir()]
    paths = [*PACKAGE.glob("*.py"), *(path for folder in folders for path in folder.resolve().rglob("*.py"))]
    for path in paths:
        text = path.read_text()
        if "numba" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.split(".")[:1] == ["numba"] and name not in ("numba", "numba.extending") for name in names):
                found.add(path.name)
    assert found == {"numba_internals.py"}


class Shelf(FunctionCache):
    """Keeps what was compiled in memory."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}

    @property
    def cache_path(self) -> str:
        return ""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        content = self.kept.get(types_key(sig, target_context.codegen()))
        return None if content is None else from_bytes(target_context, content)

    def save_overload(self, sig: Any, data: Any) -> None:
        assert not holds_addresses(data)
        self.kept[types_key(sig, data.codegen)] = as_bytes(data)


def test_a_dispatcher_asks_its_cache_by_types_and_runs_what_that_gives() -> None:
    shelf = Shelf()

    def compiled() -> Any:
        function: Any = njit(pipeline_class=WholeCompiler)(lambda number: total(NUMBERS) + number)
        keep_in(function, shelf, function.compile)
        return function

    first = compiled()
    assert (first(1.0), first(2)) == (EXPECTED + 1.0, EXPECTED + 2)
    assert len(shelf.kept) == 2
    again = compiled()
    assert (again(1.0), again(2)) == (EXPECTED + 1.0, EXPECTED + 2)
    assert sum(again.stats.cache_hits.values()) == 2
    assert not again.stats.cache_misses


def test_a_callback_is_compiled_when_told_and_has_an_address() -> None:
    function = callback(lambda number: shared(number), "float64(float64)")
    shelf = Shelf()
    keep_in(function, shelf, function.compile)
    function.compile()
    assert function.address
    assert function.ctypes(1.0) == 30.0
    assert len(shelf.kept) == 1


def test_folders_of_one_source_are_the_same_and_of_others_differ() -> None:
    one, other = Path("/somewhere/module.py"), Path("/elsewhere/module.py")
    assert cache_folders(one) == cache_folders(one)
    assert cache_folders(one)[0] != cache_folders(other)[0]
    assert not cache_folders(one)[0].is_absolute()
    assert cache_folders(one)[1].is_absolute()


def test_compiling_is_an_event_and_loading_is_none() -> None:
    class Counting(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.started = self.ended = 0

        def on_start(self, event: object) -> None:
            self.started += 1

        def on_end(self, event: object) -> None:
            self.ended += 1

    shelf = Shelf()
    counts = []
    for _ in range(2):
        function: Any = njit(pipeline_class=WholeCompiler)(lambda number: number + 1.0)
        keep_in(function, shelf, function.compile)
        with event.install_listener("numba:compile", counting := Counting()):
            function(1.0)
        counts.append((counting.started > 0, counting.ended == counting.started))
    assert counts == [(True, True), (False, True)]


def test_a_type_has_the_size_that_it_has_in_memory() -> None:
    record = np.dtype([("first", np.int64), ("second", np.float64), ("third", np.int64)], align=True)
    assert size_of(types.int64) == 8
    assert size_of(types.UniTuple(types.int64, 3)) == 24
    # An array: owner, parent, items, size of an item, data, shape and strides.
    assert size_of(types.Array(from_dtype(record), 1, "A")) == 7 * 8


def test_an_array_of_one_field_lies_where_it_is_said_to() -> None:
    table = np.arange(12, dtype=np.int64).reshape(4, 3)
    kind = types.Array(types.int64, 1, "A")

    @intrinsic
    def column(typingctx: Any, address: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            data = builder.inttoptr(args[0], context.get_data_type(types.int64).as_pointer())
            stride, itemsize = ir.Constant(word, 24), ir.Constant(word, 8)
            return array_at(context, builder, kind, data, args[1], stride, itemsize)

        return kind(types.int64, types.int64), codegen

    @njit
    def summed(address: int, count: int) -> Any:
        found = column(address, count)
        return found.sum() + 100 * len(found)

    assert summed(table.ctypes.data + 8, 3) == 1 + 4 + 7 + 300


def test_a_function_of_c_is_called_by_its_name_with_a_text_that_is_part_of_the_code() -> None:
    @intrinsic
    def length(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            text = cgutils.global_constant(builder, "some_text", cgutils.make_bytearray(b"four\0"))
            byte = ir.IntType(8).as_pointer()
            strlen = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(64), [byte]), "strlen")
            return builder.call(strlen, [builder.bitcast(text, byte)])

        return types.int64(), codegen

    assert njit(lambda: length())() == 4


def test_bytes_are_copied_between_addresses() -> None:
    source, target = np.arange(8, dtype=np.uint8), np.zeros(8, np.uint8)

    @intrinsic
    def copy(typingctx: Any, to: Any, of: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            to_at, of_at = (builder.inttoptr(at, byte) for at in args[:2])
            cgutils.raw_memcpy(builder, to_at, of_at, args[2], 1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    @njit
    def copied(to: int, of: int, count: int) -> None:
        copy(to, of, count)

    copied(target.ctypes.data, source.ctypes.data, 5)
    assert target.tolist() == [0, 1, 2, 3, 4, 0, 0, 0]
