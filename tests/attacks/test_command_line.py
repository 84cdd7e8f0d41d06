"""Damaged files at the command line: one line of error, exit status 2, and nothing written."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from gpusched_env.experiments.cli import main
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.scenario import load_scenario
from tests.attacks.mutations import damaged, garbled
from tests.workload.kineto_traces import write
from tests.workload.nsys_exports import three_kernels
from tests.workload.test_import_kineto import three_kernels as kineto_events


class CommandLine:
    """The command line, in this process and in an empty folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        monkeypatch.chdir(folder)
        self._monkeypatch, self._capsys, self._folder = monkeypatch, capsys, folder

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit status, and what it complained about."""
        self._monkeypatch.setattr(sys, "argv", ["gpusched", *arguments])
        try:
            main()
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, self._capsys.readouterr().err

    def refuses(self, *arguments: str) -> bool:
        """Whether it complains; if so, in one line and without leaving a file behind."""
        before = sorted(self._folder.rglob("*"))
        status, complaint = self.run(*arguments)
        if status == 0:
            return False
        assert status == 2, complaint
        assert complaint.startswith("error: "), complaint
        assert complaint.count("\n") == 1, complaint
        assert sorted(self._folder.rglob("*")) == before, "nothing is written"
        return True


@pytest.fixture
def gpusched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(monkeypatch, capsys, tmp_path)


def test_damaged_traces(gpusched: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    whole = write(path, kineto_events()).read_bytes()
    refused = 0
    for seed in range(1000, 1030):
        dice = random.Random(seed)
        content = garbled(whole, dice) if seed % 2 else json.dumps(damaged(json.loads(whole), dice)).encode()
        path.write_bytes(content)
        refused += gpusched.refuses("import", "trace", "net.json", "--out", "out.workload.json.gz")
        (tmp_path / "out.workload.json.gz").unlink(missing_ok=True)
    assert refused > 10
    assert gpusched.refuses("import", "trace", "no such.json")
    assert gpusched.refuses("import", "trace", "net.json", "--iteration-us", "-5")


def test_damaged_reports(gpusched: CommandLine, tmp_path: Path) -> None:
    path = three_kernels(tmp_path / "my report.sqlite").close()
    whole = path.read_bytes()
    for seed in range(2000, 2010):
        path.write_bytes(garbled(whole, random.Random(seed)))
        gpusched.refuses("import", "trace", path.name, "--out", "out.workload.json.gz")
        (tmp_path / "out.workload.json.gz").unlink(missing_ok=True)


def test_damaged_scenarios_and_gpus(gpusched: CommandLine, tmp_path: Path) -> None:
    """None of these gets as far as an episode: the compared scheduler does not exist."""
    scenario, gpu = tmp_path / "mine.yaml", tmp_path / "gpu é.yaml"
    toy = yaml.safe_load(yaml.safe_dump(msgspec.to_builtins(load_scenario("Toy"))))
    spec = yaml.safe_load(yaml.safe_dump(msgspec.to_builtins(load_gpu("toy-4sm")))) | {"name": "mine"}
    for seed in range(3000, 3015):
        dice = random.Random(seed)
        scenario.write_text(yaml.safe_dump(damaged(toy, dice)), encoding="utf-8", errors="replace")
        gpu.write_text(yaml.safe_dump(damaged(spec, dice)), encoding="utf-8", errors="replace")
        assert gpusched.refuses("compare", "mine.yaml", "--schedulers", "nobody")
        assert gpusched.refuses("compare", "Toy", "--gpu", gpu.name, "--schedulers", "nobody")
