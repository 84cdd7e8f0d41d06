"""Playing one case."""

from __future__ import annotations

from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.experiments.fuzz.compare import Differs
from gpusched_env.experiments.fuzz.device_duel import DeviceDuel
from gpusched_env.experiments.fuzz.duel import Duel, MakeDevice
from gpusched_env.experiments.fuzz.outcome import Outcome


def play(case: Case, device: MakeDevice, against: MakeDevice) -> Outcome:
    """Run ``case`` on a new ``device`` and on one that is trusted, and compare.

    Raises:
        InputError: the case is not a valid problem.
    """
    duel = _duel(case, device, against)
    try:
        duel.run()
    except Differs as differs:
        duel.outcome.difference = differs.difference
    duel.outcome.counts["commands"] = len(duel.outcome.moves)
    return duel.outcome


def _duel(case: Case, device: MakeDevice, against: MakeDevice) -> Duel:
    if case.env is None:
        return DeviceDuel(case, device, against)
    # Cases on devices alone do without the environment and what it needs.
    from gpusched_env.experiments.fuzz.env_duel import EnvDuel

    return EnvDuel(case, device, against)
