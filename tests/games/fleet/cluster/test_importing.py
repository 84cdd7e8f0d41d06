"""Tables of a cluster are read; broken ones are one sentence with line and field. The command runs them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.games.fleet.cluster.importing import read_nodes, read_pods
from gpusched_env.games.fleet.cluster.problem import Node, PodKind
from gpusched_env.games.fleet.cluster.shipped import shipped_problem, shipped_workloads
from tests.refusals import refused

NODE_ROWS = """\
sn,cpu_milli,memory_mib,gpu,model,count
a,32000,1000,0,,1
b,96000,2000,8,A100,2
"""
POD_ROWS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos
p0,4000,100,1,460,,LS
p1,8000,100,2,1000,A100|T4,BE
p2,500,10,0,0,,BE
p3,4000,100,1,460,,LS
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_tables_become_nodes_and_pods(tmp_path: Path) -> None:
    assert read_nodes(written(tmp_path / "n.csv", NODE_ROWS)) == (
        Node(32000, 1000, 0, ""), Node(96000, 2000, 8, "A100"), Node(96000, 2000, 8, "A100"),
    )  # fmt: skip
    pods = read_pods(written(tmp_path / "mine.csv", POD_ROWS))
    half, two, none = PodKind(4000, 100, 1, 460, ""), PodKind(8000, 100, 2, 1000, "A100|T4"), PodKind(500, 10, 0, 0, "")
    assert pods.name == "mine"
    assert [pods.kinds[kind] for kind in pods.submitted] == [half, two, none, half]
    assert pods.asked_milli == 2 * 460 + 2000
    assert two.allowed == ("A100", "T4")
    (tmp_path / "mine.csv.gz").write_bytes(gzip.compress(POD_ROWS.encode()))
    assert read_pods(tmp_path / "mine.csv.gz") == pods


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("96000,2000,8", "96000,2000,17", "line 3: gpu is '17', must be a whole number from 0 to 16"),
        ("96000,2000,8", "96000,2000,-1", "line 3: gpu is '-1'"),
        ("96000,2000,8", "9e4,2000,8", "line 3: cpu_milli is '9e4'"),
        ("96000,2000,8", "96000,,8", "line 3: memory_mib is ''"),
        ("8,A100", "8,", "line 3: gpu is 8 and model is ''"),
        ("0,,1", "0,A100,1", "line 2: gpu is 0 and model is 'A100'"),
        ("8,A100", "8,A100|T4", "must be one GPU model"),
        ("A100,2", "A100,0", "line 3: count is '0', must be a whole number from 1"),
        ("A100,2", "A100,100000", "line 3: more than 100000 nodes"),
        ("A100,2", "A100", "line 3 has 5 fields, must have 6"),
        ("gpu,model", "gpus,model", "line 1 names column gpu 0 times"),
        ("sn,cpu", "gpu,cpu", "line 1 names column gpu 2 times"),
        ("a,32000,1000,0,,1\nb,96000,2000,8,A100,2\n", "", "no nodes"),
        ("A100", "A\x00", "line 3: model is"),
    ],
)
def test_broken_nodes_are_one_sentence(old: str, new: str, named: str, tmp_path: Path) -> None:
    assert old in NODE_ROWS
    with refused(InputError, "n.csv", named):
        read_nodes(written(tmp_path / "n.csv", NODE_ROWS.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("1,460,,LS\np1", "1,1001,,LS\np1", "line 2: gpu_milli is '1001', must be a whole number from 0 to 1000"),
        ("2,1000", "2,500", "line 3: gpu_milli is 500, must be 1000 where num_gpu is 2"),
        ("10,0,0", "10,0,500", "line 4: num_gpu is 0 and gpu_milli is 500"),
        ("10,0,0", "10,1,0", "line 4: num_gpu is 1 and gpu_milli is 0"),
        ("500,10", "\N{SUPERSCRIPT TWO},10", "line 4: cpu_milli is"),
        ("500,10", "1" * 13 + ",10", "line 4: cpu_milli is"),
        ("A100|T4", "A" * 201, "line 3: gpu_spec is"),
        ("num_gpu", "gpu", "line 1 names column num_gpu 0 times"),
        ("p0,4000", "p0,'4000", "line 2: cpu_milli is"),
    ],
)
def test_broken_pods_are_one_sentence(old: str, new: str, named: str, tmp_path: Path) -> None:
    assert old in POD_ROWS
    with refused(InputError, "p.csv", named):
        read_pods(written(tmp_path / "p.csv", POD_ROWS.replace(old, new)))


def test_files_that_are_none_are_one_sentence(tmp_path: Path) -> None:
    with refused(InputError, "none.csv", "cannot be read"):
        read_nodes(tmp_path / "none.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(POD_ROWS.encode())[:-9])
    with refused(InputError, "cut.csv.gz", "damaged or truncated"):
        read_pods(tmp_path / "cut.csv.gz")
    with refused(InputError, "p.csv", "no pods"):
        read_pods(written(tmp_path / "p.csv", ""))


def test_the_published_cluster_is_shipped() -> None:
    assert len(shipped_workloads()) == 17
    problem = shipped_problem("default")
    assert (len(problem.nodes), problem.capacity_milli, len(problem.workload.submitted)) == (1213, 6_212_000, 8152)
    assert problem.models == ("A10", "G2", "G3", "P100", "T4", "V100M16", "V100M32")
    with refused(InputError, "'defualt'", "did you mean 'default'"):
        shipped_problem("defualt")


def test_the_command_places_pods_of_ones_own(tmp_path: Path) -> None:
    files = ["--nodes", str(written(tmp_path / "n.csv", NODE_ROWS))]
    files += ["--pods", str(written(tmp_path / "p.csv", POD_ROWS.replace("|T4", "")))]
    out = tmp_path / "placed.json"
    command = ["lab", "cluster", *files, "--policies", "fgd,best-fit", "--seeds", "3", "--json", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert list(found["policies"]) == ["fgd", "best-fit"]
    assert 50.0 < found["policies"]["fgd"]["in_use_pct"] <= 100.0
    assert 0.0 < found["policies"]["fgd"]["dropped_pct"] < 50.0
    for options, named in (
        (files[:2], "needs both"),
        ([*files, "--policies", "fdg"], "did you mean 'fgd'"),
        ([*files, "--policies", ","], "names none"),
        (["--workload", "cpu51"], "no workload is called 'cpu51'"),
        ([*files, "--ratio", "0"], "the ratio is 0"),
    ):
        refusal = CliRunner().invoke(app, ["lab", "cluster", *options])
        assert isinstance(refusal.exception, InputError)
        assert named in str(refusal.exception)
