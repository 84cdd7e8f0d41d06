"""Hashes of what something is made by: what changes them, and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from gpusched_env import sources
from gpusched_env.caching import keeping_folder
from gpusched_env.experiments.ranking.made import closure_of
from gpusched_env.sources import hash_of, name_of
from tests.made_up_package import forget, instead

DEVICE = '''"""A device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.hardware.law import law
from gpusched_env.devices import make

if TYPE_CHECKING:
    from gpusched_env.display.chart import Chart

RATES = "rates.json"


def play(kernels: int) -> int:
    """Plays."""
    from gpusched_env.hardware.late import late

    return law(kernels) + late(kernels)  # both
'''
FILES = {
    "__init__.py": "from gpusched_env.hardware.elsewhere import elsewhere\n",
    "hardware/__init__.py": "",
    "hardware/law.py": "def law(kernels):\n    return kernels\n",
    "hardware/late.py": "def late(kernels):\n    return 2\n",
    "hardware/elsewhere.py": "",
    "devices/__init__.py": "def other():\n    from gpusched_env.hardware import elsewhere\n",
    "devices/device.py": DEVICE,
    "display/chart.py": "class Chart: ...\n",
    "data/rates.json": "{}",
    "data/others.json": "{}",
    "baselines/base.py": "BASE = 1\n",
    "baselines/one.py": "from gpusched_env.baselines.base import BASE\nfrom gpusched_env.hardware import law\n",
    "baselines/two.py": "from gpusched_env.baselines.base import BASE\n",
    "baselines/registry.py": "from gpusched_env.baselines import one, two\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "gpusched_env"
    with instead(root, FILES):
        yield root


def names(*roots: str | Path) -> list[str]:
    return sorted(name_of(path) for path in closure_of(roots))


def now(module: str) -> str:
    return hash_of(closure_of([f"gpusched_env.{module}"]))


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_closure_has_what_functions_import_and_data_but_no_facade(package: Path) -> None:
    found = names("gpusched_env.devices.device")
    laws = ["__init__", "elsewhere", "late", "law"]
    devices = ["devices/__init__.py", "devices/device.py"]
    assert found == ["data/rates.json", *devices, *(f"hardware/{name}.py" for name in laws)]
    edit(package / "devices" / "device.py", "from gpusched_env.devices import make\n", "")
    assert "hardware/elsewhere.py" not in names("gpusched_env.devices.device"), "it only lies in the package"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# both", "# of them"),
        ('    """Plays."""\n', ""),
        ('"""A device."""', '"""Devices.\n\nSeveral.\n"""'),
        ("law(kernels) + late(kernels)", "(law(kernels)\n            + late( kernels ))"),
        ("    from gpusched_env.display.chart import Chart", "    from gpusched_env.display.chart import Chart, Bar"),
    ],
)
def test_comments_docstrings_and_formatting_change_nothing(package: Path, old: str, new: str) -> None:
    before = now("devices.device")
    edit(package / "devices" / "device.py", old, new)
    assert now("devices.device") == before


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("devices/device.py", "law(kernels) +", "law(kernels) -", ["devices.device"]),
        ("devices/device.py", "kernels: int", "kernels: float", ["devices.device"]),
        ("hardware/late.py", "2", "3", ["devices.device"]),
        ("hardware/law.py", "return kernels", "return -kernels", ["devices.device", "baselines.one"]),
        ("data/rates.json", "{}", "[]", ["devices.device"]),
        ("data/others.json", "{}", "[]", []),
        ("display/chart.py", "...", "pass", []),
        ("baselines/base.py", "1", "1.0", ["baselines.one", "baselines.two"]),
        ("baselines/two.py", "import BASE", "import BASE as B", ["baselines.two"]),
    ],
)
def test_what_else_is_edited_changes_those_that_import_it(
    package: Path, file: str, old: str, new: str, changed: list[str]
) -> None:
    modules = ("devices.device", "baselines.one", "baselines.two")
    before = {module: now(module) for module in modules}
    edit(package / file, old, new)
    assert [module for module in modules if now(module) != before[module]] == changed


def test_files_of_a_user_count_with_what_they_import_and_read(package: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "tools").mkdir(parents=True)
    (own / "tools" / "__init__.py").write_text("from .deep import DEPTH\n")
    (own / "tools" / "deep.py").write_text("DEPTH = 1\n")
    (own / "near.py").write_text("import numpy\n")
    (own / "table.csv").write_text("1,2\n")
    file = own / "mine.py"
    file.write_text(
        "import math, near\nfrom tools import DEPTH\nfrom gpusched_env.baselines import two\nTABLE = 'table.csv'\n"
    )
    assert names(file) == [
        *("__init__.py", "baselines/base.py", "baselines/two.py", "deep.py", "mine.py", "near.py", "table.csv"),
    ]
    (own / "near.py").write_text("print 'of another Python'")
    before = hash_of(closure_of([file]))
    (own / "tools" / "deep.py").write_text("DEPTH = 22\n")
    after = hash_of(closure_of([file]))
    assert after != before
    assert hash_of(closure_of([file]), "depth=3") not in (before, after)
    assert closure_of([file], closure_of([own / "near.py"])) == closure_of([file]) - {own / "near.py"}


def parsed_now(module: str) -> tuple[str, int]:
    """The hash that a new process finds, and how many files it parses for that."""
    forget()
    with mock.patch.object(sources, "parsed", wraps=sources.parsed) as calls:
        return now(module), calls.call_count


def test_what_was_parsed_is_remembered(package: Path) -> None:
    before, count = parsed_now("devices.device")
    assert count == 6
    assert parsed_now("devices.device") == (before, 0)
    edit(package / "hardware" / "late.py", "2", "3")
    after, count = parsed_now("devices.device")
    assert (after != before, count) == (True, 1)
    (package / "hardware" / "late.py").touch()
    assert parsed_now("devices.device") == (after, 1)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"parser": "another", "known": {}}'])
def test_what_is_remembered_wrongly_is_parsed_anew(package: Path, content: bytes) -> None:
    before, count = parsed_now("devices.device")
    folder = keeping_folder(package / sources.REMEMBERED)
    assert folder is not None
    (folder / sources.REMEMBERED).write_bytes(content)
    assert parsed_now("devices.device") == (before, count)
    assert parsed_now("devices.device") == (before, 0)


def test_where_nothing_can_be_kept_all_is_parsed(package: Path) -> None:
    with mock.patch.object(sources, "keeping_folder", return_value=None):
        before = parsed_now("devices.device")
        assert parsed_now("devices.device") == before
