"""Names become files and folders, and are shown on terminals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

ESCAPE = "\x1b[31mred"
SHIPPED = Path(__file__).parents[2] / "gpusched_env" / "scenarios" / "Toy.yaml"


def scenario_file(folder: Path, **changed: Any) -> Path:
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(SHIPPED.read_text(encoding="utf-8")), **changed}))
    return path


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a\\b", " a", "a\nb", "a\x00b", ESCAPE, "n" * 300])
def test_what_can_be_no_file_is_no_name_of_a_scenario(name: str, tmp_path: Path) -> None:
    with refused(InputError, "name") as caught:
        load_scenario(scenario_file(tmp_path, name=name))
    assert str(caught.value).isprintable(), "the message reaches a terminal"
    with refused(InputError, "name"):
        load_scenario("Toy", name=name)


@pytest.mark.parametrize("name", ["Toy 2", "größer", "a.b", "負荷"])
def test_names_of_all_languages_are_names(name: str, tmp_path: Path) -> None:
    assert load_scenario(scenario_file(tmp_path, name=name)).name == name


def test_tenants_have_names_that_can_be_shown(tmp_path: Path) -> None:
    tenants = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["tenants"]
    tenants[0]["name"] = ESCAPE
    with refused(InputError, "tenants") as caught:
        load_scenario(scenario_file(tmp_path, tenants=tenants))
    assert str(caught.value).isprintable()
