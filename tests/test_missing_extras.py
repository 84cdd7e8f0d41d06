"""Packages that are not installed: which extra has them, and how it is installed from where this package came."""

from __future__ import annotations

import json
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import EXTRA_OF, needs

ROOT = Path(__file__).resolve().parents[1]
IMPORTED_AS = {"cuda-core": "cuda", "cupy-cuda13x": "cupy", "nvmath-python": "nvmath", "dm-tree": "dm_tree"}


def test_every_package_of_an_extra_is_known() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in ("experiments", "train", "sweep", "ray", "video", "gpu"):
        names = [metadata_name(text) for text in extras[extra] if not text.startswith("gpusched-env")]
        assert {EXTRA_OF[name] for name in names} == {extra}, extra
        assert {name for name in EXTRA_OF if EXTRA_OF[name] == extra} == set(names)


def metadata_name(requirement: str) -> str:
    name = requirement.partition(">")[0].partition("[")[0]
    return IMPORTED_AS.get(name, name.replace("-", "_").lower())


class Distribution:
    """What is known of an installed package."""

    def __init__(self, origin: dict[str, Any] | None) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._origin is None else json.dumps(self._origin)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'gpusched-env[train]'"),
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, "pip install -e '/a b[train]'"),
        ({"url": "file:///tree", "dir_info": {}}, "pip install '/tree[train]'"),
        ({"url": "file:///x.whl", "archive_info": {}}, "pip install 'gpusched-env[train] @ file:///x.whl'"),
    ],
)
def test_advice_names_where_the_package_came_from(
    origin: dict[str, Any] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _: Distribution(origin))
    assert needs("gpusched train", "torch.nn") == f"gpusched train needs torch: {command}"


def test_what_was_never_installed_is_installed_from_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", unknown)
    assert needs("a chart", "plotly") == f"a chart needs plotly: pip install '{ROOT}[experiments]'"
