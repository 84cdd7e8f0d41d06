"""From a case of child launches on which two devices differ to a simpler one on which they still do."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from gpusched_env.experiments.fuzz.trees import (
    GONE,
    SECONDS,
    TreeShrinker,
    instead,
    places_in,
    simpler_numbers,
)
from gpusched_env.games.child_launches.experiments.fuzz.case import LaunchCase
from gpusched_env.games.child_launches.experiments.fuzz.duel import MakeLaunchDevice, play_launches
from gpusched_env.games.child_launches.hardware.launch_costs import FREE

ROUNDS = 5
LISTS = r"kernels|kernels/.*/(threads|requests)"
OPTIONS = r"threshold|queue_of|parents|held_until|aggregated|misused|seed|before|snapshot|fresh"
NUMBERS = (
    r"kernels/(?!.*(block|items)).*|kernels/.*items|threshold|spawned|snapshot|seed|before|machine/gpu/sms"
    r"|machine/(?!gpu).*|body/.*"
)
FREE_LAUNCHES: dict[str, Any] = msgspec.to_builtins(FREE)


class LaunchShrinker(TreeShrinker[LaunchCase]):
    """Greedy, as the one of the other devices."""

    def __init__(
        self, case: LaunchCase, device: MakeLaunchDevice, against: MakeLaunchDevice, *, seconds: float = SECONDS
    ) -> None:
        super().__init__(case, lambda tried: play_launches(tried, device, against).difference, seconds=seconds)

    def _simplify_all(self) -> None:
        for _ in range(ROUNDS):
            before = self._tree
            self._first(("spawned",), lambda _: [1.0, 0.0])
            self._everywhere(OPTIONS, lambda _: [GONE])
            self._first(("machine", "launches"), lambda own: [FREE_LAUNCHES, own | {"pool": None}])
            for name, value in FREE_LAUNCHES.items():
                self._first(("machine", "launches", name), functools.partial(instead, value))
            # Requests of equal threads in place of those with threads of their own.
            self._everywhere(r"kernels/.*/threads", lambda own: [] if own is None else [GONE])
            for path in places_in(self._tree, LISTS):
                if isinstance(self._value(path), list):
                    self._shorten(path)
            self._everywhere(NUMBERS, simpler_numbers)
            if self._tree == before:
                break
