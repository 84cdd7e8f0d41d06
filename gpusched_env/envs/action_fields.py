"""What an action space is laid out by: slots, and what there is to choose for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scenarios.scenario import PreemptionName
from gpusched_env.workload.cores.spec import MOST_EVENTS

QUARTERS = (1, 2, 3, 4)
"""Partition sizes on offer, in quarters of the GPU's SMs (rounded down, at least one SM).

Tenants in even rows count their SMs from rank 0, tenants in odd rows from the other end, so that two
tenants can be kept apart.
"""

PAUSES = (0, 2, 4, 8, 16, 32, 64, 128)
"""Pauses of a best-effort tenant between two jobs on offer, in eighths of the time that one takes alone: 0 to 16 times
that. GPUColo's controller goes from none to about two (1 s of sleep after iterations of half a second: Chen et al.,
ICDCS 2024); the longest outlast a busy time."""

BUDGETS = (64, 1024, 4096, 8192, 16_384, 32_768, MOST_EVENTS)
"""Misses in a period of a CPU core on offer: hardly any, the thresholds of Ali and Yun (BWLOCK++, ECRTS 2018, Fig. 8)
between which kernels are slowed by less and by more, half of what a memory hog misses, and no regulation."""

LEAST_INTERVAL_US = 1.0
"""Shortest interval that decisions stand for: below, every launch may as well be one."""


@dataclass(frozen=True, slots=True)
class ActionFields:
    """The fields of an :class:`~gpusched_env.envs.actions.ActionLayout`, which says what the actions mean."""

    slots: int
    """Rows of tenants."""
    running_slots: int
    stream_priorities: tuple[int, ...]
    """Stream priorities on offer; empty where decisions stand for an interval, as are :attr:`modes`."""
    modes: tuple[PreemptionName, ...] = ()
    """Ways of preempting; empty without preemption."""
    quarters: tuple[int, ...] = ()
    """Partition sizes in quarters of the GPU; empty without partitions, and where decisions stand for an interval
    unless they are about :attr:`knobs`."""
    pauses: tuple[int, ...] = ()
    """Pauses of best-effort tenants, in eighths of a job's time alone; empty where nobody can be throttled."""
    budgets: tuple[int, ...] = ()
    """Budgets of CPU cores that share the GPU's memory, in misses a period; empty where they cannot be set."""
    core_slots: int = 0
    """Rows of CPU cores; 0 where their budgets cannot be set."""
    lookahead: int = 1
    """Pending slots of a tenant."""
    streams: int = 0
    """Streams of the scheduler's own."""
    rejects: bool = False
    """Whether jobs can be rejected. Where decisions stand for an interval, a dispatcher may reject without that."""
    interval_us: float = 0.0
    """How long a decision stands: a dispatcher launches meanwhile (:mod:`gpusched_env.planning.interval`), and the
    actions are which tenant goes first, or :attr:`knobs`, or :attr:`budgets`, and rejections; 0: every launch is an
    action."""
    synchronises: bool = False
    """Whether tiles of kernels that need each other's can be synchronised; observations then have predictions
    (:mod:`gpusched_env.envs.extra_columns`)."""
    reshapes: bool = False
    """Whether kernels can be given other forms; observations show them (:mod:`gpusched_env.envs.extra_columns`)."""
    futures: bool = True
    """Whether observations tell then what is lost in sampled futures (:mod:`gpusched_env.planning.lookahead`);
    otherwise its columns are 0. Environments leave that out unless told otherwise; files of policies that do not say
    so are of those that were told."""

    @classmethod
    def of(
        cls,
        scenario: Offer,
        slots: int,
        running_slots: int,
        interval_us: float = 0.0,
        *,
        rejects: bool = True,
        futures: bool = True,
    ) -> Self:
        """The actions that ``scenario`` offers.

        Args:
            rejects: whether rejections are among them, where the scenario offers any.
            futures: :attr:`futures`; where every launch is an action there are none in any case.

        Raises:
            InputError: the scenario does not offer launches; no such interval, or it does not go with the scenario.
        """
        if "launch" not in scenario.commands:
            raise InputError(f"scenario {scenario.name}: commands {scenario.commands} lack 'launch'; nothing could run")
        if not scenario.stream_priorities:
            raise InputError(f"scenario {scenario.name}: stream_priorities is empty; give at least (0,)")
        if 0.0 < interval_us < LEAST_INTERVAL_US:
            raise InputError(f"interval_us is {interval_us:g}, must be 0 or at least {LEAST_INTERVAL_US:g} us")
        if interval_us > 0.0 and (scenario.shown_ahead > 1 or scenario.own_streams > 0):
            raise InputError(
                f"interval_us is {interval_us:g}, but scenario {scenario.name} has a look-ahead or streams of the "
                "scheduler's own: a dispatcher launches the oldest of each tenant into its own stream; give 0"
            )
        launches = interval_us == 0.0
        throttles = "throttle" in scenario.commands
        budgets = "budget" in scenario.commands and scenario.core_count > 0
        return cls(
            slots=slots,
            running_slots=running_slots,
            stream_priorities=scenario.stream_priorities if launches else (),
            modes=scenario.preemption if launches and "preempt" in scenario.commands else (),
            quarters=QUARTERS if (launches or throttles) and "partition" in scenario.commands else (),
            pauses=PAUSES if throttles else (),
            budgets=BUDGETS if budgets else (),
            core_slots=scenario.core_count if budgets else 0,
            lookahead=scenario.shown_ahead,
            streams=scenario.own_streams,
            rejects=rejects and "reject" in scenario.commands,
            synchronises=launches and "synchronise" in scenario.commands,
            reshapes=launches and "reshape" in scenario.commands,
            interval_us=interval_us,
            futures=launches or (futures and not throttles and not budgets),
        )

    def in_scenario(self, scenario: Offer) -> Self:
        """The actions that another scenario offers, with the same rows and grain; raises as :meth:`of`."""
        rows = self.slots, self.running_slots
        return self.of(scenario, *rows, self.interval_us, rejects=self.rejects, futures=self.futures)

    @property
    def knobs(self) -> bool:
        """Whether decisions that stand for an interval are about the pauses and SMs of best-effort tenants."""
        return self.interval_us > 0.0 and bool(self.pauses)

    @property
    def serves(self) -> bool:
        """Whether decisions that stand for an interval are about who goes first."""
        return self.interval_us > 0.0 and not self.pauses and not self.budgets

    @property
    def predicts(self) -> bool:
        """Whether observations have predictions of pairs and forms."""
        return self.synchronises or self.reshapes

    @property
    def pending_slots(self) -> int:
        """Rows of pending launches."""
        return self.slots * self.lookahead
