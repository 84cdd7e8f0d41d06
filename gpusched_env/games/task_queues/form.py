"""Forms in which an application with a queue of tasks runs: what a scheduler chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from gpusched_env.errors import InputError, did_you_mean

Strategy = Literal["persistent", "discrete", "bulk-synchronous"]
Worker = Literal["block", "warp"]
STRATEGIES: Final = ("persistent", "discrete", "bulk-synchronous")
WORKERS: Final = ("block", "warp")
FETCHES: Final = (32, 64, 128, 256)
"""Those of the papers."""
MOST_FETCH: Final = 256
MOST: Final = 2**31
"""All numbers of a form are below it."""
STREAMS: Final = 32
"""Kernels of a discrete form go round them."""


@dataclass(frozen=True, slots=True)
class Form:
    """How tasks are run."""

    strategy: Strategy = "persistent"
    """``persistent``: one kernel whose workers poll the queue. ``discrete``: the host copies the queue's end and
    launches a kernel for what is new. ``bulk-synchronous``: it waits for that kernel's end first."""
    worker: Worker = "block"
    fetch: int = 32
    """Tasks that a worker takes at once (1 to 256)."""
    polls: int | None = None
    """Fruitless polls after which a worker votes for the end; empty copies in a row after which the host of a discrete
    form ends. ``None``: as the problem says."""
    threshold: int = 0
    """Of a discrete search: items of at least this depth wait in a second queue; 0: there is none."""
    delta: int = 1
    """By how much it grows when the queues change places."""
    grid: int | None = None
    """Workers of a persistent kernel. ``None``: as many as the GPU has room for."""

    def __post_init__(self) -> None:
        for name, known in (("strategy", STRATEGIES), ("worker", WORKERS)):
            word = getattr(self, name)
            if type(word) is not str or word not in known:
                raise InputError(f"form: {name} is {word!r}; {did_you_mean(str(word), known)}")
        for name in ("fetch", "polls", "threshold", "delta", "grid"):
            number = getattr(self, name)
            if (type(number) is not int or number >= MOST) and not (number is None and name in ("polls", "grid")):
                raise InputError(f"form: {name} is {number!r}, must be a whole number below 2^31")
        if not 1 <= self.fetch <= MOST_FETCH:
            raise InputError(f"form: fetch is {self.fetch}, must be 1 to {MOST_FETCH}")
        for name, least in (("polls", 1), ("threshold", 0), ("delta", 1), ("grid", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"form: {name} is {value}, must be at least {least}")
        if self.threshold and self.strategy != "discrete":
            raise InputError(f"form: threshold is {self.threshold}, but only discrete forms have a second queue")

    @property
    def name(self) -> str:
        """In a word: ``persistent-block-32``."""
        threshold = f"-t{self.threshold}+{self.delta}" if self.threshold else ""
        return f"{self.strategy}-{self.worker}-{self.fetch}{threshold}"


QUICK: Final[dict[str, Form]] = {
    "bfs": Form("persistent", "block", 32),
    "pagerank": Form("persistent", "block", 32),
    "colouring": Form("persistent", "block", 256),
}
"""Of each application, the form that is quickest in the mean of 100 random problems if the host looks for the end."""
LAST: Final = Form("bulk-synchronous")
"""In which the host looks for the end: before it launches, it copies how much there is to do."""
