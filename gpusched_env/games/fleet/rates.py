"""The constants of the rate model that are shipped, and what GPUColo published of its fleet."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, Final

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.fleet.hardware.co_location import RateModel

FILE: Final = "fleet_rates.json"


def shipped_rates(source: str = "block-level") -> RateModel:
    """As ``gpusched reproduce fleet-rates`` fitted them.

    Args:
        source: ``block-level``, or ``published``: what training does to batches is that of GPUColo's Figure 6.

    Raises:
        InputError: there is no such source.
    """
    stored: dict[str, Any] = json.loads((resources.files("gpusched_env.data") / "calibration" / FILE).read_text())
    if source not in stored["rates"]:
        raise InputError(f"no rates of a fleet are {source!r}; {did_you_mean(source, stored['rates'])}")
    return RateModel(**stored["rates"][source])


@functools.cache
def published_fleet() -> Any:
    """Figures of the paper's fleet, and of its Figure 6."""
    text = (resources.files("gpusched_env.data") / "published" / "gpucolo_fleet.json").read_text(encoding="utf-8")
    return json.loads(text)
