"""Files with something wrong either load or are refused with one error that names the file: nothing else happens."""

from __future__ import annotations

import functools
import gzip
import io
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policy_file import METADATA, read_policy
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.data import read_recorded
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.names import check_scheduler
from gpusched_env.experiments.ranking.result import read_ranking
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.importers import import_trace, summarise
from gpusched_env.workload.workload import decode_workload, encode_workload, read_workload
from tests.attacks.mutations import NASTY, damaged, garbled, loads_or_says_why
from tests.workload.kineto_traces import write
from tests.workload.nsys_exports import Export, three_kernels
from tests.workload.test_import_kineto import three_kernels as kineto_events

SEEDS = range(400)


def as_json(data: Any) -> bytes:
    return json.dumps(data).encode()


def as_yaml(data: Any) -> bytes:
    # What YAML cannot say (a lone surrogate) it is not asked to.
    return yaml.safe_dump(data, allow_unicode=False).encode("utf-8", "replace")


def import_whole(path: Path) -> None:
    """Import, and have what comes out be a workload that can be kept and summed up."""
    workload = import_trace(path)
    assert decode_workload(encode_workload(workload), "again") == workload
    summarise(workload)


def attack(path: Path, data: Any, written: Callable[[Any], bytes], load: Callable[[], object]) -> int:
    """Load every damaged version of a file; how many were refused."""
    whole = written(data)
    refused = 0
    for seed in SEEDS:
        dice = random.Random(seed)
        content = garbled(whole, dice) if seed % 4 == 0 else written(damaged(data, dice))
        if path.suffix == ".gz":
            content = gzip.compress(content) if seed % 8 else garbled(gzip.compress(content), dice)
        path.write_bytes(content)
        refused += not loads_or_says_why(load, path, seed)
    return refused


def test_pytorch_traces(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    whole = json.loads(write(path, kineto_events()).read_bytes()) | {"gpusched_iteration_us": [70.0, 71.0]}
    assert attack(path, whole, as_json, lambda: import_whole(path)) > 100


def test_workload_files(tmp_path: Path) -> None:
    path = tmp_path / "net.workload.json.gz"
    recorded = msgspec.to_builtins(read_recorded("dlrm_infer_b256"))
    recorded["variants"] = recorded["variants"][:1]
    assert attack(path, recorded, as_json, lambda: summarise(read_workload(path), load_gpu("h100-sxm"))) > 100


@pytest.mark.long
def test_scenario_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    shipped = yaml.safe_load(yaml.safe_dump(msgspec.to_builtins(load_scenario("PreemptiveServing"))))
    assert attack(path, shipped, as_yaml, lambda: load_scenario(path)) > 100


@pytest.mark.long
def test_gpu_specifications(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    data = yaml.safe_load(yaml.safe_dump(msgspec.to_builtins(load_gpu("v100-sxm")))) | {"name": "mine"}
    assert attack(path, data, as_yaml, lambda: load_gpu(path)) > 100


def test_nsight_systems_exports(tmp_path: Path) -> None:
    source = three_kernels(tmp_path / "whole.sqlite")
    source.mark(1.0, "gpusched_iteration_us=[61.0]")
    whole = source.close().read_bytes()
    path = tmp_path / "report.sqlite"
    refused = 0
    for seed in SEEDS:
        dice = random.Random(seed)
        path.write_bytes(garbled(whole, dice) if seed % 4 == 0 else whole)
        if seed % 4:
            damage_tables(path, dice)
        refused += not loads_or_says_why(lambda: import_whole(path), path, seed)
    assert refused > 100


def test_policies(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    info, weights = read_policy(FOLDER / "PriorityFill.npz")

    def as_npz(data: Any) -> bytes:
        stream = io.BytesIO()
        np.savez_compressed(stream, **{METADATA: np.frombuffer(as_json(data), np.uint8)}, **weights)
        return stream.getvalue()

    assert attack(path, msgspec.to_builtins(info), as_npz, lambda: ExportedPolicy.load(path)) > 100


def test_result_files_that_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "ranking.json"
    rank("Toy", ["sjf", "fifo"], 3, path, workers=1)
    assert attack(path, json.loads(path.read_text()), as_json, lambda: read_ranking(path)) > 100


def test_specifications_of_schedulers() -> None:
    fine = b"fikit(epsilon_us=50.5,contexts=shared,queues=4)"
    specs = [garbled(fine, random.Random(seed)).decode("utf-8", "replace") for seed in SEEDS]
    found = [why_not(functools.partial(check_scheduler, spec)) for spec in specs]
    assert sum(bool(refusal) for refusal in found) > 300
    for spec, refusal in zip(specs, found, strict=True):
        assert len(refusal) < len(spec) + 1_000, refusal


def why_not(load: Callable[[], object]) -> str:
    """The one error that is allowed; empty without."""
    try:
        load()
    except InputError as error:
        return str(error)
    return ""


def damage_tables(path: Path, dice: random.Random) -> None:
    """Cells, rows, columns or tables of a database changed or gone."""
    database = sqlite3.connect(path, isolation_level=None)
    # A crash may damage it further: nobody waits for the disk.
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA journal_mode = MEMORY")
    for _ in range(dice.randint(1, 3)):
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = dice.choice(tables)
        column = dice.choice([row[1] for row in database.execute(f"PRAGMA table_info({table})")])
        value = dice.choice(NASTY)
        change = dice.randrange(6)
        try:
            if change <= 2:
                value = value if not isinstance(value, (list, dict)) else b"\x00\xff"
                some = f"rowid % {dice.randint(1, 3)} = 0"
                database.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {some}", (value,))
            elif change == 3:
                database.execute(f"DELETE FROM {table} WHERE rowid % 2 = {dice.randrange(2)}")
            elif change == 4:
                database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
            else:
                database.execute(f"DROP TABLE {table}")
        except (sqlite3.Error, OverflowError, UnicodeEncodeError):
            pass  # the database itself refuses: the next one then
    database.close()


@pytest.mark.parametrize(
    "text",
    [
        "&a [*a]",
        "tenants: &a [*a]",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ntenants: [*c, *c]",
        "name: 2020-13-45",
        "? [1, 2]\n: 3",
        "!!python/object/apply:os.system [echo]",
        "- " * 500,
        "{" * 500,
        "horizon_us: 1e400",
        "\ttabs: 1",
        "name: \x07",
        "",
        "5",
    ],
)
def test_yaml_that_only_looks_like_a_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert not loads_or_says_why(lambda: load_scenario(path), path, 0)
    assert not loads_or_says_why(lambda: load_gpu(path), path, 0)


def test_folders_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "folder.yaml"
    folder.mkdir()
    for load in (load_scenario, load_gpu, import_trace, read_workload):
        for path in (folder, tmp_path / "absent.yaml"):
            assert not loads_or_says_why(functools.partial(load, path), path, 0)


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE songs (name TEXT)")
    database.commit()
    database.close()
    assert not loads_or_says_why(lambda: import_trace(path), path, 0)
    # A view that never ends is no table.
    endless = Export(tmp_path / "endless.sqlite").close()
    database = sqlite3.connect(endless)
    forever = "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start FROM n"
    database.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {forever}")
    database.commit()
    database.close()
    assert not loads_or_says_why(lambda: import_trace(endless), endless, 0)


def test_what_loads_can_be_used(tmp_path: Path) -> None:
    """A problem is made of every damaged scenario and specification that loads, or an error says why not."""
    path = tmp_path / "mine.yaml"
    toy = load_scenario("Toy")
    spec = yaml.safe_load(yaml.safe_dump(msgspec.to_builtins(load_gpu("toy-4sm")))) | {"name": "mine"}
    used = 0
    for data, build in (
        (spec, lambda: build_problem(toy, gpu=load_gpu(path))),
        (yaml.safe_load(yaml.safe_dump(msgspec.to_builtins(toy))), lambda: build_problem(load_scenario(path))),
    ):
        for seed in range(1, 200, 2):
            path.write_bytes(as_yaml(damaged(data, random.Random(seed))))
            try:
                build()
                used += 1
            except InputError:
                continue
    assert used > 20
