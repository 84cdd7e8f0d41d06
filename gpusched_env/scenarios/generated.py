"""Generated workloads beside the recorded ones that they follow, for the page about scenarios."""

from __future__ import annotations

import functools
from typing import Final

from gpusched_env.data import read_recorded
from gpusched_env.workload.graph_figures import GraphFigures, graph_figures
from gpusched_env.workload.irregular.workload import irregular

RECORDED: Final = {
    "physics": (
        "bodies6_step_b2048",
        "bodies9_step_b2048",
        "bodies11_step_b2048",
        "bodies20_step_b2048",
        "physics_step_b4096",
    ),
    "dynamic": (
        "condconv_b0_infer_b1",
        "dynamic_routing_infer_b4",
        "dynamic_routing_input0_b4",
        "dynamic_routing_input1_b4",
        "dynamic_routing_input2_b4",
        "instanas_infer_b1",
    ),
    "static": (
        "amoebanet_infer_b1",
        "bert_infer_b1_s128",
        "lstm_infer_b16_t50",
        "mobilenetv3_infer_b1",
        "nasnetalarge_infer_b1",
        "randwire_infer_b1",
        "resnet50_infer_b1",
    ),
}
"""Workloads whose kernels' memory was recorded, by class."""
FAMILIES: Final = {"physics": ("physics",), "dynamic": ("dynamic",), "static": ("cells", "wired")}
"""Families that follow a class."""
SEEDS: Final = 32
COLUMNS: Final = {
    "kernels": ".0f",
    "depth": ".2f",
    "parallelism": ".2f",
    "small": ".2f",
    "blocks": ".0f",
    "duration_us": ".1f",
    "long_us": ".1f",
    "segments": ".1f",
}
"""Figures of the table, and how they are written."""

INTRODUCTION = """\
`irregular(family=physics,seed=3)` stands wherever a workload's name does: in scenario files, in sets to train on and
in `--set 'tenants.a.workload=irregular(family=physics,seed=3)'`. Such a workload is a random graph of kernels of one of
the kinds that were recorded, with the memory that each reads and writes, the same for a seed wherever it is made. In
YAML it is quoted where commas mean something: `{workload: "irregular(family=physics,seed=3)"}`. A tenant's `host_us`
says how fast its host launches; without, it is as slow as PyTorch's.

`chain(seed=3)` is two to four matrix products in a row, each of which needs the tiles of the one before, with grids and
durations in the range of [cuSync's](cusync.md), made for a V100 (`gpu=a100-sxm` for another). With
`kind=convolutions` it is two or four equal convolutions, and with `count=8` eight chains, of which each job is one. A
scenario whose `commands` have `synchronise` lets schedulers run them beside each other. The kernels that cuSync was
measured on have names, too, with the grids and times of its baseline: `mlp(model=gpt3_v100,tokens=1024)` (or
`llama_v100`, or either on an `a100`), `attention(model=gpt3_v100,tokens=512)` (`keys=1024` for as many from before) and
`convolutions(network=resnet38_v100,channels=64,batch=1)` (or `vgg19_v100`). A size that was not measured is refused
with those that were.

`products(seed=3)` is a chain of products in the tiles and slices that are quickest alone, which a scenario whose
`commands` have `reshape` lets schedulers change: their kernels have up to three *forms* each. Times are those of a
law that is fitted to cuSync's products on a V100 and an A100, and at most 3 % off in the median. With `among=6` each
is issued as one of the six quickest: libraries do not always find the quickest. With `forms=true` the products of
`mlp(...)` have forms, too; as they were measured they take what was measured.

From the smallest to the largest figure of a workload: kernels; depth, the share of them in the longest chain;
parallelism, the sum of durations over the critical path; the share of small kernels, of at most 40 blocks; medians of
blocks and of durations, their 95th percentile (microseconds); segments that a kernel reads and writes on average.
"""


@functools.cache
def generated_figures(family: str) -> tuple[GraphFigures, ...]:
    """Figures of the first :data:`SEEDS` workloads of a family."""
    return tuple(graph_figures(irregular(f"irregular(family={family},seed={seed})")) for seed in range(SEEDS))


@functools.cache
def recorded_figures(kind: str) -> tuple[GraphFigures, ...]:
    """Figures of the recorded workloads of a class."""
    return tuple(graph_figures(read_recorded(name)) for name in RECORDED[kind])


def generated_section() -> list[str]:
    """What generated workloads are, and how they compare, as lines of Markdown."""
    lines = [INTRODUCTION, f"| workloads | {' | '.join(COLUMNS)} |", f"|---|{'---|' * len(COLUMNS)}"]
    for kind, families in FAMILIES.items():
        recorded = recorded_figures(kind)
        lines.append(_row(f"{len(recorded)} recorded, {kind}", recorded))
        lines += [_row(f"`{family}`, seeds 0 to {SEEDS - 1}", generated_figures(family)) for family in families]
    return [*lines, ""]


def _row(label: str, figures: tuple[GraphFigures, ...]) -> str:
    cells = []
    for name, form in COLUMNS.items():
        values = [getattr(row, name) for row in figures]
        cells.append(f"{min(values):{form}} to {max(values):{form}}")
    return f"| {label} | {' | '.join(cells)} |"
