"""GPUColo: Chen, Subramaniyan, Wang, *Latency-Guaranteed Co-Location of Inference and Training for Reducing Data Center
Expenses* (ICDCS 2024).

Section 6: jobs in order of start; first fit on utilisation and memory over the GPUs in use, a new GPU when none fits.
On each GPU training sleeps, and has a smaller share, as far as the SLO of inference needs
(:mod:`gpusched_env.games.fleet.co_location`). The paper leaves other dispatching to future
work; best fit is a first step there.
"""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.baselines.packing import Packing
from gpusched_env.games.fleet.windows import PackingRule


class GpuColoFleet(Packing):
    """GPUColo: first fit, or best fit; training sleeps as much as the SLO of inference needs."""

    ranges: ClassVar[Ranges] = {
        "best": Choice((False, True)),
        "worst": Choice((False, True)),
        "inference": Range(0.2, 1.0),
    }

    def __init__(self, best: bool = False, worst: bool = False, inference: float = 1.0) -> None:
        """
        Args:
            best: to the GPU with the least utilisation left, in place of the first one.
            worst: what is held at the SLO is the inference job of a GPU that is worst off, in place of their mean
                (Section 3). The paper's fleet has every job at its SLO while training can still give way.
            inference: largest utilisation by inference of a GPU that is shared, in (0, 1]; the paper limits the sum of
                all only. With more, inference may miss its SLO whatever training does.

        Raises:
            InputError: ``inference`` is out of range.
        """
        if not 0.0 < inference <= 1.0:
            raise InputError(f"gpucolo: inference is {inference}, must be above 0 and at most 1 (of a GPU)")
        self.rule = PackingRule(best=best, inference=inference)
        self.control = "gpucolo-worst" if worst else "gpucolo"


class FirstFit(Packing):
    """First fit without control: jobs share GPUs and slow each other as they do."""

    control = "shared"
