"""The page about scenarios, generated from their files.

Generated workloads stand beside the recorded ones that they follow.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from importlib import resources
from typing import Any, Final

from gpusched_env.data import read_recorded
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.scenario import Reward, Scenario, load_scenario, scenario_names
from gpusched_env.scenarios.variants import variant_changes
from gpusched_env.scenarios.workload_sets import SetName
from gpusched_env.workload.generated_names import IrregularGraph
from gpusched_env.workload.irregular_graphs import irregular
from gpusched_env.workload.memory import GraphFigures, graph_figures
from gpusched_env.workload.requests import DATES, TABLES, TraceFormat
from gpusched_env.workload.serving import Batching, Geometric, ListedLengths, Lognormal, RecordedLengths
from gpusched_env.workload.tenant import Backlog, Bursts, ClosedLoop, Periodic, Poisson, Regimes, Tenant, Trace

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

GENERATED_INTRODUCTION = """\
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
    lines = [GENERATED_INTRODUCTION, f"| workloads | {' | '.join(COLUMNS)} |", f"|---|{'---|' * len(COLUMNS)}"]
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


SETS: tuple[SetName, ...] = ("train", "held_out")

INTRODUCTION = """\
A scenario is a scheduling problem: a GPU, tenants with workloads and arrivals, what a scheduler may do, and what
it is charged for. The shipped ones are YAML files in `gpusched_env/scenarios`; [one of your own](#a-file-of-your-own)
goes wherever a name does. What an environment of each looks like, row by row: [environments](environments.md). How much
each leaves to be gained: [headroom](headroom.md).
"""

OWN_FILE = """\
A whole file, with what each part is for (every field is in the tables below):

```yaml
# mine.yaml. Times are in microseconds. 2e5 is a number here, unlike in YAML 1.1.
name: MyServing # names results, and the environment gpusched/MyServing-v0
summary: A chat service beside nightly fine-tuning # optional: for listings and reports
gpu: a100-sxm # a name (gpusched list gpus), or the path of a specification: my-gpu.yaml
tenants:
  - name: chat
    workload: bert_infer_b1_s128 # a name (gpusched list workloads), or a path: traces/chat.workload.json.gz
    arrivals: {kind: poisson, rate_per_s: 150} # whether or not the last request is answered
    jobs: 40 # it stops after so many
    priority: 0 # the most urgent
    iteration_us: 1500 # host times scaled so that a request alone takes this long on this GPU
    slo_us: 5000 # a request should not take longer
    weight: 1.0 # of its jobs in the cost
  - name: tuning
    workload: bert_train_b16_s128
    arrivals: {kind: closed-loop} # the next step follows the last one; no jobs: until the horizon
    priority: 1
    weight: 0.5
horizon_us: 2e5 # an episode ends here at the latest
commands: [launch, partition] # what a scheduler may do besides waiting
stream_priorities: [0, -1] # that it can choose from
reward: # what is charged, a sum: here slowdowns, and 2 for each missed objective
  slowdown: 1.0
  slo_miss: 2.0
workload_sets: # optional: what to train on, and what to keep for evaluation
  train:
    - {} # as above
    - chat: {workload: bert_infer_b8_s128, iteration_us: 2000}
  held_out:
    - chat: {workload: gpt2_decode_b8_s512, iteration_us: 3000, slo_us: 9000}
```

Paths in it, of workloads, traces and the GPU, are relative to it. Unknown keys, kinds and wrong values are refused
with the file, the field and what would be right. A file goes wherever a name does: `gpusched compare mine.yaml`,
`load_scenario("mine.yaml")`. To have it by its name, register it; single and vector environments get an id:

```python
import gymnasium

import gpusched_env

env = gymnasium.make(gpusched_env.register("mine.yaml"))  # gpusched/MyServing-v0
scenario = gpusched_env.load_scenario("MyServing")
```

Workloads need not be recorded on the scenario's GPU: they are [carried over](own-work.md#any-workload-on-any-gpu).
"""

TRACES = """\
**Files of traces** are recognised by the columns of their lines, with a line of names (`.csv`) or as objects of JSON
(`.jsonl`), or by the keys of a JSON document. All may be gzipped. What else is in them is ignored.
"""

DOCUMENTS = """\
| DISB's workloads | document with `tasks`; `task` names one | `trace` in ms, `frequency` a second for `time` s | no |
| Orion's gaps | a list of numbers | gaps in s; the first request comes at 0 | no |
| one's own | document with one of `times_us`, `times_ms`, `times_s`, `gaps_s` | as named | `prompts`, `answers` |

Times are in order, from 0 on: a file that is not sorted is refused, with the line. Dates count from the first one, and
are UTC where they name no zone. A length of 0 counts as 1: a prefill yields a token. A file has up to 4,194,304
requests, and what is played of it lasts up to 1e12 us. A cut of Mooncake's trace is played by
[an example](examples/chat_trace.yaml)."""

WORKLOAD_SETS = """\
A scheduler that was trained on one pair of networks may know that pair and nothing else. `workload_sets` lists
variants of a scenario, some to train on and some held out. A variant names tenants and, for each, the workload
that takes the place of its own, with whatever has to change with it (host speed, objective, arrivals, number of
jobs and weight); tenants that it does not name stay. `{}` is the scenario as it is. Number and priorities of the
tenants never change, so observations and actions keep their shapes. A held-out variant has at least one workload
that no training variant has, which is checked when the file is read.

```yaml
workload_sets:
  train:
    - {}
    - inference: {workload: mobilenetv3_infer_b1, iteration_us: 1000, slo_us: 2000}
  held_out:
    - training: {workload: bert_train_b16_s128, iteration_us: 12000, jobs: 8, weight: 2.5}
```

Training draws a variant for each episode; evaluation runs each held-out one:

```python
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.variants import scenario_variants, variant_changes

scenario = load_scenario("InferenceBesideTraining")
changes = variant_changes(scenario, "train")
# env.reset(options={"scenario": changes[rng.integers(len(changes))]})
for variant in scenario_variants(scenario, "held_out"):
    print(variant.name, [tenant.workload for tenant in variant.tenants])
```
"""


def scenarios_page() -> str:
    """The whole page as Markdown."""
    parts = ["# Scenarios", ""]
    parts += ["<!-- Generated by `python -m gpusched_env.experiments.reference`; do not edit. -->", ""]
    parts += [INTRODUCTION, "| name | what | variants |", "|---|---|---|"]
    scenarios = [load_scenario(name) for name in scenario_names()]
    for scenario in scenarios:
        sets = scenario.workload_sets
        count = "" if sets is None else f"{len(sets.train)} to train on, {len(sets.held_out)} held out"
        parts.append(f"| `{scenario.name}` | {scenario.summary} | {count} |")
    parts += ["", "## Why these", ""]
    parts += [f"- `{scenario.name}`: {_leading_comment(scenario.name)}" for scenario in scenarios]
    parts += ["", "## A file of your own", "", OWN_FILE]
    parts += ["## Fields of a file", "", *_fields("A scenario", Scenario), *_fields("A tenant", Tenant)]
    parts += ["**Arrivals**, by `kind`, each with `start_us`, the earliest first arrival (default 0):", ""]
    parts += [f"- {_kind(process)}" for process in (ClosedLoop, Poisson, Periodic, Bursts, Regimes, Backlog, Trace)]
    parts += [
        "",
        *_fields("A serving engine: `batching` of a tenant ([how it serves](continuous-batching.md))", Batching),
    ]
    parts += ["**Lengths** of prompts and answers, by `kind`:", ""]
    parts += [f"- {_kind(drawn)}" for drawn in (ListedLengths, Lognormal, Geometric, RecordedLengths)]
    parts += ["", TRACES, "| from | file | time | lengths |", "|---|---|---|---|", *map(_format, TABLES), DOCUMENTS]
    parts += ["", *_fields("The reward: weights of the cost terms", Reward)]
    parts += _fields("The profiles that schedulers and agents are told", ProfileError)
    parts += ["## Generated workloads", "", *generated_section(), *_fields("Parameters", IrregularGraph)]
    parts += ["## Workload sets", "", WORKLOAD_SETS]
    for scenario in scenarios:
        if scenario.workload_sets is not None:
            parts += _variants(scenario)
    return "\n".join(parts).rstrip() + "\n"


def _leading_comment(name: str) -> str:
    """The comment at the head of a scenario's file, as one paragraph."""
    text = (resources.files("gpusched_env.scenarios") / f"{name}.yaml").read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def _fields(title: str, struct: type) -> list[str]:
    """A table of a struct's fields: name, default, and the docstring that follows it in the source."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(definition, ast.ClassDef)
    rows = [f"**{title}**", "", "| field | default | meaning |", "|---|---|---|"]
    for statement, after in zip(definition.body, [*definition.body[1:], None], strict=True):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        meaning = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            meaning = _one_line(str(after.value.value))
        default = "" if statement.value is None else f"`{_as_yaml(ast.unparse(statement.value))}`"
        rows.append(f"| `{statement.target.id}` | {default} | {meaning} |")
    return [*rows, ""]


def _as_yaml(source: str) -> str:
    """A default as it would stand in a file."""
    plain = {"None": "null", "True": "true", "False": "false"}
    plain |= {"Reward(turnaround=1.0)": "{turnaround: 1.0}", "ProfileError()": "{}"}
    if source.startswith("("):
        items = ast.literal_eval(source)
        return f"[{', '.join(str(item) for item in items)}]"
    return plain.get(source, source.strip("'") or '""')


def _kind(process: type) -> str:
    tag = process.__struct_config__.tag  # type: ignore[attr-defined]
    given = [name for name in process.__struct_fields__ if name != "start_us"]  # type: ignore[attr-defined]
    fields = f" ({', '.join(f'`{name}`' for name in given)})" if given else ""
    return f"`{tag}`{fields}: {_one_line(inspect.getdoc(process) or '')}"


def _format(table: TraceFormat) -> str:
    """A row of the formats of traces."""
    unit = "dates with a time of day" if table.unit == DATES else table.unit
    either = ", either or none" if table.own else ""
    return f"| {table.source} | lines | `{table.time}`, {unit} | `{table.prompt}`, `{table.answer}`{either} |"


def _one_line(text: str) -> str:
    return " ".join(re.sub(r":\w+:`~?", "`", text).replace("``", "`").split())


def _variants(scenario: Scenario) -> list[str]:
    lines = [f"### {scenario.name}", "", "| set | variant | instead |", "|---|---|---|"]
    for which in SETS:
        for i, change in enumerate(variant_changes(scenario, which)):
            given = "; ".join(_substitute(tenant, fields) for tenant, fields in change["tenants"].items())
            lines.append(f"| {which} | `{scenario.name}-{which}-{i}` | {given or 'as it is'} |")
    return [*lines, ""]


def _substitute(tenant: str, fields: dict[str, Any]) -> str:
    others = ", ".join(f"{name} {_value(value)}" for name, value in fields.items() if name != "workload")
    return f"{tenant} `{fields['workload']}`" + (f" ({others})" if others else "")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        numbers = [f"{name} {_value(v)}" for name, v in value.items() if name != "kind" and v]
        return " ".join([value["kind"], *numbers] if "kind" in value else numbers)
    return "as recorded" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
