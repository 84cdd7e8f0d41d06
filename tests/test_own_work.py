"""What the pages about one's own work tell a reader to write works as it stands there."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import gpusched_env
from gpusched_env.hardware.specs import (
    Contention,
    Copies,
    GpuSpec,
    Instructions,
    Limits,
    MatrixRates,
    Power,
    TileCosts,
    Timing,
)
from gpusched_env.scenarios import catalogue
from gpusched_env.workload.importers.pytorch import read_execution_trace
from gpusched_env.workload.importers.recording import UNPROFILED, check_unprofiled
from gpusched_env.workload.workload import read_workload

DOCS = Path(__file__).resolve().parents[1] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = catalogue.scenarios_page() if page == "scenarios.md" else (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's scenario file, as the current one."""
    (text,) = (block for block in blocks("scenarios.md", "yaml") if block.startswith("# mine.yaml"))
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_annotated_scenario_file_is_a_problem(mine: Path) -> None:
    scenario = gpusched_env.load_scenario(mine / "mine.yaml")
    assert (scenario.name, scenario.horizon_us) == ("MyServing", 200_000.0)
    problem = gpusched_env.build_problem(scenario)
    assert {row.workload for row in problem.carried_over} == {"bert_infer_b1_s128", "bert_train_b16_s128"}
    assert problem.programs[0].alone_us == pytest.approx(1500.0, rel=0.02)


@pytest.mark.parametrize(("page", "first"), [("scenarios.md", "import gymnasium"), ("own-work.md", "import gymnasium")])
def test_python_blocks_run(page: str, first: str, mine: Path) -> None:
    (block,) = (block for block in blocks(page, "python") if block.startswith(first))
    known: dict[str, object] = {}
    exec(block, known)
    assert known["env"] is not None


def test_the_page_says_which_keys_of_a_gpu_file_may_be_left_out() -> None:
    text = (DOCS / "own-work.md").read_text(encoding="utf-8")
    _, _, rows = text.partition("| of | may be left out |\n| --- | --- |\n")
    said = {}
    for row in rows.partition("\n\n")[0].splitlines():
        _, of, keys, _ = row.split("|")
        said[of.strip(" `")] = re.findall(r"`(\w+)`", keys)
    kinds = {"the file itself": GpuSpec, "limits": Limits, "timing": Timing, "tiles": TileCosts}
    kinds |= {
        "copies": Copies,
        "power": Power,
        "contention": Contention,
        "instructions": Instructions,
        "matrix_rates": MatrixRates,
    }
    optional = {of: [f.name for f in msgspec.structs.fields(kind) if not f.required] for of, kind in kinds.items()}
    assert said == {of: names for of, names in optional.items() if names}


def test_a_trace_from_elsewhere_becomes_a_workload(gpusched: Callable[..., int], tmp_path: Path) -> None:
    (block,) = (block for block in blocks("own-work.md", "python") if "by-hand.json" in block)
    exec(block, {})
    (command,) = (block for block in blocks("own-work.md", "sh") if "by-hand.json" in block)
    assert gpusched(*shlex.split(command)[1:]) == 0
    workload = read_workload(tmp_path / "by-hand.workload.json.gz")
    assert len(workload.variants) == 3
    assert workload.iteration_us == (230.0,)
    assert [kernel.name for kernel in workload.kernels] == [f"layer{number}" for number in range(4)]


def test_the_recording_of_a_trace_is_as_the_importer_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiler's part of the page, on a machine without a GPU: iterations and unprofiled times are in the file."""
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    known = {"iteration": lambda: torch.ones(4).sum()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks("own-work.md", "python"):
            if "torch.profiler" in block:
                (tmp_path / "trace.json.gz").unlink(missing_ok=True)
                exec(block.replace(", ProfilerActivity.CUDA", ""), known)
    document = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert len(check_unprofiled(document[UNPROFILED], "trace")) == 20
    steps = {event["name"] for event in document["traceEvents"] if event.get("cat") == "user_annotation"}
    assert len([name for name in steps if re.fullmatch(r"ProfilerStep#\d+", name)]) == 3
    on_a_gpu = (tmp_path / "operators.json").read_text().replace('"cpu"', '"cuda:0"')
    (tmp_path / "operators.json").write_text(on_a_gpu)
    operators = read_execution_trace(tmp_path / "operators.json")
    sums = [operators[e["args"]["Record function id"]] for e in document["traceEvents"] if e["name"] == "aten::sum"]
    assert {(op.name, op.reads[0].end) for op in sums} == {("aten::sum", 16)}
