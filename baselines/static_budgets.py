"""Static budgets: cores of the CPU are throttled all the time, whether or not a kernel runs.

What a regulator does that knows of no locks; the budget binds always. H. Yun et al., *MemGuard* (RTAS 2013), without
its reclaiming of unused budgets.
"""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.bwlock import Bwlock


class StaticBudgets(Bwlock):
    """Every core has the same budget at all times; kernels go straight to their streams."""

    always: ClassVar[bool] = True
