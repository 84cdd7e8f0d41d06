"""Clusters as tables: CSV files of nodes and of pods, also gzipped, with a line of names. More columns may follow.

Nodes have ``cpu_milli, memory_mib, gpu, model``, pods ``cpu_milli, memory_mib, num_gpu, gpu_milli`` and, where some can
run on some GPU models only, ``gpu_spec``: those models, separated by ``|``. Either may have a ``count``: so many of
them, one after the other. That is how the public simulator of Weng et al. (USENIX ATC 2023) has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.problem import (
    MOST_CPU_MILLI,
    MOST_GPUS,
    MOST_MEMORY_MIB,
    MOST_NODES,
    MOST_PODS,
    WHOLE_GPU,
    Node,
    PodKind,
    Workload,
)
from gpusched_env.reading import read_bytes, table_rows, unzipped

NODE_COLUMNS: Final = ("cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
COUNT: Final = "count"
MOST_LETTERS: Final = 200
"""Letters of a GPU model, or of several, at most."""
MOST_DIGITS: Final = 12
"""Digits of a number, at most."""


def read_nodes(path: Path) -> tuple[Node, ...]:
    """The nodes of a file, those of a line one after the other.

    Raises:
        InputError: it cannot be read, or a line of it is broken; names file, line and field.
    """
    nodes: list[Node] = []
    for where, row in table_of_rows(path, NODE_COLUMNS):
        gpus, model = whole_field(where, row, "gpu", MOST_GPUS), _model(where, row, "model")
        if (gpus > 0) != bool(model):
            raise InputError(
                f"{where}: gpu is {gpus} and model is {model!r}; a node with GPUs, and no other, has a model"
            )
        if "|" in model:
            raise InputError(f"{where}: model is {model!r}, must be one GPU model")
        node = Node(whole_field(where, row, "cpu_milli", MOST_CPU_MILLI, 1), _memory(where, row), gpus, model)
        count = _count(where, row, MOST_NODES)
        if len(nodes) + count > MOST_NODES:
            raise InputError(f"{where}: more than {MOST_NODES} nodes")
        nodes += [node] * count
    if not nodes:
        raise InputError(f"{path}: no nodes, at least one must be there")
    return tuple(nodes)


def read_pods(path: Path, name: str | None = None) -> Workload:
    """The pods of a file as a workload, called by the file's name if no other is given.

    Raises:
        InputError: it cannot be read, or a line of it is broken; names file, line and field.
    """
    pods: list[PodKind] = []
    for where, row in table_of_rows(path, POD_COLUMNS):
        kind = pod_of(where, row)
        count = _count(where, row, MOST_PODS)
        if len(pods) + count > MOST_PODS:
            raise InputError(f"{where}: more than {MOST_PODS} pods")
        pods += [kind] * count
    if not pods:
        raise InputError(f"{path}: no pods, at least one must be there")
    return Workload.of_pods(name or path.name.partition(".")[0], pods)


def pod_of(where: str, row: Mapping[str, str]) -> PodKind:
    """What the pod of a line asks for; ``where`` names the line.

    Raises:
        InputError: a field is broken.
    """
    gpus, milli = (
        whole_field(where, row, field, most) for field, most in (("num_gpu", MOST_GPUS), ("gpu_milli", WHOLE_GPU))
    )
    if (gpus == 0) != (milli == 0):
        raise InputError(f"{where}: num_gpu is {gpus} and gpu_milli is {milli}; both are 0, or none is")
    if gpus > 1 and milli != WHOLE_GPU:
        raise InputError(f"{where}: gpu_milli is {milli}, must be {WHOLE_GPU} where num_gpu is {gpus}, above 1")
    models = _model(where, row, "gpu_spec") if gpus else ""
    return PodKind(whole_field(where, row, "cpu_milli", MOST_CPU_MILLI), _memory(where, row), gpus, milli, models)


def table_of_rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Lines of a table, by column, each with its place.

    Raises:
        InputError: it cannot be read, lacks a needed column, or a line has more or fewer fields than the first.
    """
    names: list[str] = []
    for line, cells in table_rows(unzipped(read_bytes(path), str(path)), str(path)):
        if not names:
            names = [cell.strip() for cell in cells]
            for column in needed:
                if names.count(column) != 1:
                    raise InputError(
                        f"{path}: line {line} names column {column} {names.count(column)} times, must name each of "
                        f"{', '.join(needed)} once"
                    )
        elif len(cells) != len(names):
            raise InputError(f"{path}: line {line} has {len(cells)} fields, must have {len(names)} as the first line")
        else:
            yield f"{path}: line {line}", dict(zip(names, cells, strict=True))


def whole_field(where: str, row: Mapping[str, str], field: str, most: int, least: int = 0) -> int:
    """A field that is a whole number.

    Raises:
        InputError: it is none, or outside of its range; ``where`` names the line.
    """
    text = row[field].strip()
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else -1
    if not least <= value <= most:
        raise InputError(f"{where}: {field} is {text[:40]!r}, must be a whole number from {least} to {most}")
    return value


def _memory(where: str, row: Mapping[str, str]) -> int:
    return whole_field(where, row, "memory_mib", MOST_MEMORY_MIB)


def _count(where: str, row: Mapping[str, str], most: int) -> int:
    return whole_field(where, row, COUNT, most, 1) if COUNT in row else 1


def _model(where: str, row: Mapping[str, str], field: str) -> str:
    """A GPU model, or several."""
    text = row.get(field, "").strip()
    if len(text) > MOST_LETTERS or not text.isprintable():
        raise InputError(f"{where}: {field} is {text[:40]!r}, must be at most {MOST_LETTERS} printable letters")
    return text
