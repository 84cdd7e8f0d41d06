"""The page on which an episode is seen, made of small ones and opened in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gpusched_env.experiments.reference.episodes import SCENARIOS, SCHEDULERS, episodes_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
COMMITTED = Path(__file__).parents[3] / "docs" / "episodes.html"
BLUE, ORANGE = (0x42, 0x69, 0xD0), (0xE8, 0x71, 0x0A)
"""Colours of the first two tenants."""


def browser(page: Path, folder: Path, choice: str, width: int, *output: str) -> str:
    """What a headless browser prints of a page."""
    assert CHROMIUM is not None
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=10000"),
        *(f"--window-size={width},1400", f"--user-data-dir={folder / 'profile'}", *output, f"{page.as_uri()}#{choice}"),
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def words(dom: str, element: str) -> str:
    """The text of the element with an id, as far as its first closing tag of that kind."""
    found = re.search(rf'<(\w+)[^>]* id="{element}"[^>]*>(.*?)</\1>', dom, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[2]).split())


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_shows_the_chosen_episode(tmp_path: Path) -> None:
    page = tmp_path / "episodes.html"
    page.write_text(episodes_page({"Toy": {}}, ["pass-through", "reef", "orion"]), encoding="utf-8")
    dom = browser(page, tmp_path, "scenario=Toy&scheduler=reef&time=200&zoom=1", 1400, "--dump-dom")
    assert words(dom, "scheduler") == "pass-through reef orion"
    assert words(dom, "figures").startswith("scheduler cost")
    assert ". reef: " in words(dom, "about")
    assert words(dom, "clock") == "0.082 ms"
    assert "SMs, " in dom.partition('id="held"')[2].partition('id="timeline"')[0]
    assert dom.count("<canvas") == 2
    for width in (1400, 400):
        shot = tmp_path / f"{width}.png"
        browser(page, tmp_path, "scenario=Toy&scheduler=reef&time=200&zoom=1", width, f"--screenshot={shot}")
        pixels = np.asarray(Image.open(shot).convert("RGB")).astype(int)
        shares = [np.abs(pixels - colour).sum(axis=2) < 150 for colour in (BLUE, ORANGE)]
        assert min(share.sum() for share in shares) > 500


def test_the_committed_page_is_small_and_has_ten_schedulers_on_three_scenarios() -> None:
    text = COMMITTED.read_text(encoding="utf-8")
    assert len(text) < 500_000
    assert "http" not in re.sub(r"<script type=.*?</script>", "", text, flags=re.DOTALL)
    assert (len(SCHEDULERS), len(SCENARIOS)) == (10, 3)
