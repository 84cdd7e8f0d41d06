"""Looks: tenants have one colour everywhere, and series can be told apart."""

from __future__ import annotations

import colorsys
import itertools
import os
import re
from pathlib import Path

import gpusched_env
from gpusched_env.display import palette
from gpusched_env.display.palette import BASELINE, look, rgb, tenant
from gpusched_env.scenarios.scenario import load_scenario, scenario_names

PACKAGE = Path(gpusched_env.__file__).parent
COLOUR = re.compile(r"\"#(?:[0-9a-fA-F]{3}){1,2}\"|\"C[0-9]\"|\"tab:\\w+\"|plotly\\.colors|colormaps|cmap=")
GREY_BELOW = 0.1
"""Saturation of lines and letters, which tell nothing apart."""


def grey(found: str) -> bool:
    """Whether it is a colour literal without a hue."""
    digits = found.strip('"#')
    if not found.startswith('"#'):
        return False
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    return colorsys.rgb_to_hsv(*(value / 255.0 for value in rgb(f"#{digits}")))[1] < GREY_BELOW


def modules() -> list[Path]:
    """Of the package, and of the folders beside it that it links to."""
    walked = os.walk(PACKAGE, followlinks=True)
    return [Path(folder) / name for folder, _, names in walked for name in names if name.endswith(".py")]


def test_no_chart_has_colours_of_its_own() -> None:
    sources = [path for path in modules() if path.name != "palette.py"]
    assert any("load_curve" in path.parts for path in sources)
    own = {
        f"{path.relative_to(PACKAGE)}: {found}"
        for path in sources
        for found in COLOUR.findall(path.read_text(encoding="utf-8"))
        if not grey(found)
    }
    assert not own


def test_matplotlib_knows_all_dashes_and_symbols() -> None:
    assert set(palette.LINES) == set(palette.DASHES)
    assert set(palette.MARKERS) == set(palette.SYMBOLS)


def test_a_dozen_series_are_told_apart_by_colour_and_dash() -> None:
    looks = [BASELINE, *(look(number) for number in range(11))]
    assert len({(own.colour, own.dash) for own in looks}) == 12
    assert len({(own.colour, own.symbol) for own in looks}) == 12
    # Nobody else is black, and neighbours never share a colour.
    assert all(own.colour != BASELINE.colour for own in looks[1:])
    assert all(one.colour != other.colour for one, other in itertools.pairwise(looks))


def test_many_more_still_differ() -> None:
    assert len({look(number) for number in range(50)}) == 50


def test_the_tenants_of_every_scenario_differ() -> None:
    most = max(len(load_scenario(name).tenants) for name in scenario_names())
    assert len({tenant(row).colour for row in range(most)}) == most


def test_tenants_differ_and_begin_again_after_the_last() -> None:
    assert len(set(palette.TENANTS)) == len(palette.TENANTS)
    assert tenant(len(palette.TENANTS)) == tenant(0)
    assert rgb("#0a10ff") == (10, 16, 255)
