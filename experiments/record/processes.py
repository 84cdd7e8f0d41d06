"""Programs of PyTorch, launched by Python, in two processes that the GPU runs in turns, and in two threads of one: the
rows of ``processes.jsonl``.

Each is recorded alone as well, by the same loop; a trace of it alone (``traces``) is what a prediction may see.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.sharing import RECORDED, URGENT, SharedRows, Task, behind_within, figures

if TYPE_CHECKING:
    from gpusched_env.experiments.record.sharing_gpu import TorchSharing

PROCESSES: Final = "processes"
PAIRS: Final = (
    ("resnet50_infer_b1", "vgg16_infer_b32"),
    ("resnet50_infer_b1", "resnet50_train_b128"),
    ("mobilenetv3_infer_b1", "resnet50_infer_b128"),
    ("mobilenetv3_infer_b1", "vgg19_train_b64"),
    ("densenet121_infer_b1", "vgg16_infer_b32"),
    ("densenet121_infer_b1", "convnext_base_infer_b32"),
    ("bert_infer_b1_s128", "resnet50_train_b128"),
    ("bert_infer_b1_s128", "resnet50_infer_b128"),
    ("resnet18_infer_b1", "convnext_base_infer_b32"),
    ("resnet18_infer_b1", "vgg19_train_b64"),
    ("resnet50_waits4_infer_b1", "vgg16_infer_b32"),
    ("resnet50_waits16_infer_b1", "vgg16_infer_b32"),
)
"""A host that waits for the GPU, beside one that keeps it busy. The last two wait in mid-network, so many times."""
QUICK: Final = PAIRS[:1]
MODES: Final = ("time slicing", "streams", "priority streams")


def programs_of(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Programs of pairs, each once."""
    return list(dict.fromkeys(itertools.chain(*pairs)))


def processes_rows(
    gpu: TorchSharing, pairs: Sequence[tuple[str, str]], there: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Rows that are still missing. What fails gives a row with ``error``, and is tried again another time.

    Args:
        gpu: runs the programs.
        pairs: names of programs, as :func:`~gpusched_env.experiments.record.networks.network` has them.
        there: rows that are recorded.
    """
    done = {(row["what"], row["front"], row["behind"]) for row in there if "error" not in row}
    alone = [("alone", name, None) for name in programs_of(pairs)]
    # All threads before processes: a second process's memory is not there while this one's programs are ready.
    together = [(mode, *pair) for mode in (*MODES[1:], MODES[0]) for pair in pairs]
    for what, front, behind in (*alone, *together):
        if (what, front, behind) in done:
            continue
        row = {"what": what, "front": front, "behind": behind}
        try:
            yield row | _measured(gpu, what, front, behind)
        except (GpuError, RuntimeError, OSError, EOFError) as error:
            gpu.clear()
            yield row | {"error": f"{type(error).__name__}: {error}"[:2000]}


def _measured(gpu: TorchSharing, what: str, front: str, behind: str | None) -> dict[str, Any]:
    first = Task(front, trains=False, launcher=RECORDED)
    if behind is None:
        run = gpu.alone(first)
        return {"front_us": figures(run.spans), "memory_bytes": run.memory_bytes, "board": run.board}
    second = Task(behind, trains=False, launcher=RECORDED)
    if what == "time slicing":
        return _both(gpu.processes(first, second))
    return _both(gpu.threads(first, second, URGENT if what == "priority streams" else 0))


def _both(found: SharedRows) -> dict[str, Any]:
    return {
        "front_us": figures(found.front),
        "behind_us": figures(behind_within(found)),
        "board": found.board,
    }
