"""More or less of the same: a scenario whose jobs arrive faster or slower by a factor."""

from __future__ import annotations

from typing import Final

import msgspec

from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.workload.arrivals import ArrivalProcess

RATES: Final = ("rate_per_s", "busy_rate_per_s", "speed")
GAPS: Final = ("period_us", "think_us")
"""Fields of arrivals that say how often; bursts keep their sizes, busy and calm times their lengths, traces their cuts.
"""


def loaded(scenario: Scenario) -> Scenario:
    """A scenario whose jobs arrive :attr:`~Scenario.load` times as often; that is 1 then."""
    if scenario.load == 1.0:
        return scenario
    tenants = tuple(
        msgspec.structs.replace(tenant, arrivals=faster(tenant.arrivals, scenario.load)) for tenant in scenario.tenants
    )
    return msgspec.structs.replace(scenario, tenants=tenants, load=1.0)


def faster(arrivals: ArrivalProcess, factor: float) -> ArrivalProcess:
    """An arrival process of ``factor`` times the rate; itself if it has none."""
    fields = arrivals.__struct_fields__
    rates = {name: getattr(arrivals, name) * factor for name in RATES if name in fields}
    gaps = {name: getattr(arrivals, name) / factor for name in GAPS if name in fields}
    return msgspec.structs.replace(arrivals, **rates, **gaps)
