"""The schedulers that are ranked on drawn scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpusched_env.baselines.registered import Registered
from gpusched_env.baselines.registry import SCHEDULERS
from gpusched_env.baselines.tuning import PREFIX as TUNED
from gpusched_env.baselines.tuning import tuned_spec
from gpusched_env.experiments.games.own import NamedSchedulers
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.experiments.lib.trained import agent_file, is_learned
from gpusched_env.games.drawn.agent.scheduler import ChoosingAgent
from gpusched_env.scheduling.contract import Scheduler

NAME: Final = "Drawn"
PLAIN: Final = "pass-through"
PUBLISHED: Final = (
    PLAIN, "priority-streams", "time-slicing", "mps", "exclusive", "fifo", "sjf", "wspt", "srpt", "edf", "llf", "wfq",
    "clockwork", "nexus", "paella", "triage", "moore", "plan", "preemptive-priority", "orion", "reef", "tally",
    "xsched", "lithos", "tgs", "gpreempt", "fikit", "open-loop", "conservative", "gslice", "gpucolo", "eclip", "random",
)  # fmt: skip
"""All hand-written schedulers of tenants but those for CPU cores and dependent kernels, whose mechanisms no drawn
scenario has."""
VARIANTS: Final = (
    "plan(interference=true)", "moore(price=1.2)", "interval:plan", "interval:moore(price=1.2)",
    "gpucolo(first_share=40)",
)  # fmt: skip
"""Of three of them: with the measured interference, without futures, asked every 250 us, as agents are, and with a
smaller share for best effort."""


class DrawnSchedulers(NamedSchedulers[Scheduler]):
    """Schedulers by all names that scenarios know, too: ``interval:NAME``, or files of one's own."""

    def new(self, name: str) -> Scheduler:
        if is_learned(name):
            return self.learned(agent_file(name))
        return new_scheduler(tuned_spec(name, self.game) if name.startswith(TUNED) else name)

    def defaults(self) -> list[str]:
        found = super().defaults()
        return [*found[: len(PUBLISHED)], *VARIANTS, *found[len(PUBLISHED) :]]


def learned(file: Path | None) -> Scheduler:
    """The agent in a file; ``None``: the one that is shipped."""
    return ChoosingAgent(file)


NAMED: Final = DrawnSchedulers(
    NAME, Registered("scheduler", {name: SCHEDULERS.maker(name) for name in PUBLISHED}), learned
)
