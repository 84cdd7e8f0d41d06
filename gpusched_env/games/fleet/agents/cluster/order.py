"""The rule of the queue: who goes where a pod has gone, of those that fit there; which node a pod gets a policy says.

A number for the first pod of each line, linear in what it asks for, how long it and its line wait, and how long pods of
its kind have run before, as far as they have gone: a cluster sees all that. The largest goes, of equal ones the one
that came first. So with all weights 0 it is first come first served, with overtaking. Where nobody may overtake,
nothing is to be chosen.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import native, procedure
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.fleet.cluster.gpus import fits
from gpusched_env.games.fleet.cluster.lifetimes.queue import (
    FREED,
    IN_ORDER,
    NO_NODE,
    NOBODY,
    NOW_MS,
    ROOM_MADE,
    RULE,
    WAITING_MILLI,
    Live,
    asked_milli,
    begin_pod,
    next_choice,
    who_fits,
)
from gpusched_env.games.fleet.cluster.lifetimes.stream import HOUR_MS
from gpusched_env.games.fleet.cluster.placing import choose_gpus, choose_node
from gpusched_env.games.fleet.cluster.policies.fgd import growth_with
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU
from gpusched_env.games.fleet.environment.cluster.encoding import ratio_of
from gpusched_env.reading import decoded, read_bytes

SHIPPED: Final = Path(__file__).parents[2] / "data" / "queue-order.json"
WIDEST: Final = 4.0
"""Logarithm of a run time, over that of all pods, beyond which it is told apart no more."""


class Term(enum.IntEnum):
    """What a number is made of."""

    RUNS = 0
    """Logarithm of how long pods of the kind have run, over all pods, -4 to 4, a quarter of it; 0: none has gone."""
    RUNS_SEVERAL = enum.auto()
    """The same, if it asks for several GPUs."""
    UNKNOWN = enum.auto()
    """1: none of its kind has gone."""
    GPUS = enum.auto()
    """GPUs that it asks for, over them and one."""
    NO_GPU = enum.auto()
    SEVERAL = enum.auto()
    PINNED = enum.auto()
    """1: there are GPU models on which it cannot run."""
    WAITED = enum.auto()
    """How long it has waited, over that and an hour."""
    LINE = enum.auto()
    """GPUs that its line waits for, of all that are waited for."""
    TAKES = enum.auto()
    """GPUs that it asks for, of what is free on the node."""
    FRAGMENTS = enum.auto()
    """GPUs by which fragmentation grows."""


TERMS: Final = len(Term)
SHORTEST: Final = {"RUNS": -1.0, "UNKNOWN": 1.0}
"""By hand: the kind whose pods have run shortest; a kind of which none has gone is as good as any."""
LARGEST: Final = {"GPUS": 1.0}
"""By hand: who asks for most GPUs."""


class DrawnOrder(NamedTuple):
    """Choices that were drawn by a softmax, the first ``count[0]`` rows."""

    count: Any
    at_ms: Any
    slope: Any
    """(choices, TERMS) gradient of the logarithm of the probability of what was drawn."""


class Desk(NamedTuple):
    """Arrays to reckon with."""

    going: Any
    """(lines,) pods that could go."""
    rows: Any
    """(lines, TERMS)"""
    number: Any
    """(lines,) numbers, and what becomes of them."""


def no_draws(choices: int) -> DrawnOrder:
    """Room for so many choices."""
    return DrawnOrder(np.zeros(1, np.int64), np.zeros(choices, np.int64), np.zeros((choices, TERMS)))


@procedure
def mean_run_ms(queue: Any) -> float:
    """How long pods ran that have gone, in the mean, at least 1."""
    pods, ran = 0, 0
    for kind in range(len(queue.ended)):
        pods += queue.ended[kind]
        ran += queue.ended_ms[kind]
    return float(max(1.0, ran / max(1, pods)))


@procedure
def encode_first(live: Any, pod: int, mean_ms: float, row: Any) -> None:
    """Fill in the terms of a pod that is first of its line, and fits where room was made."""
    state, pods, queue, node = live.state, live.pods, live.queue, live.queue.clock[FREED]
    kind, asked = live.stream.kinds[pod], asked_milli(live, pod)
    several = pods.gpus[kind] > 1
    ran = 0.0
    if queue.ended[kind] > 0:
        ran = np.log(max(1.0, queue.ended_ms[kind] / queue.ended[kind]) / mean_ms) / WIDEST
    row[Term.RUNS] = min(1.0, max(-1.0, ran))
    row[Term.RUNS_SEVERAL] = row[Term.RUNS] if several else 0.0
    row[Term.UNKNOWN] = 1.0 if queue.ended[kind] == 0 else 0.0
    row[Term.GPUS] = ratio_of(asked / WHOLE_GPU)
    row[Term.NO_GPU] = 1.0 if asked == 0 else 0.0
    row[Term.SEVERAL] = 1.0 if several else 0.0
    row[Term.PINNED] = 0.0
    for model in range(pods.allowed.shape[1] - 1):
        if not pods.allowed[kind, model]:
            row[Term.PINNED] = 1.0
    row[Term.WAITED] = ratio_of((queue.clock[NOW_MS] - live.stream.arrives_ms[pod]) / HOUR_MS)
    row[Term.LINE] = queue.length[kind] * asked / max(1, queue.clock[WAITING_MILLI])
    free = 0
    for gpu in range(state.gpus[node]):
        free += state.gpu_left[node, gpu]
    row[Term.TAKES] = asked / max(1, free)
    mask = choose_gpus(Policy.FGD, state, pods, live.typical, node, kind, 0.0)
    row[Term.FRAGMENTS] = growth_with(state, pods, live.typical, node, kind, mask)


@procedure
def draw_place(number: Any, count: int, temperature: float, draw: float) -> int:
    """A place, drawn by a softmax of the first numbers; these become its probabilities."""
    most, total = -np.inf, 0.0
    for place in range(count):
        most = max(most, number[place])
    for place in range(count):
        number[place] = np.exp((number[place] - most) / temperature)
        total += number[place]
    found, left = count - 1, draw
    for place in range(count):
        number[place] /= total
        if 0.0 <= left < number[place]:
            found = place
        left -= number[place]
    return found


@procedure
def choose_first(live: Any, weights: Any, temperature: float, dice: Any, desk: Any, drawn: Any) -> int:
    """Who goes where room was made, or :data:`NOBODY`: none fits."""
    count, best = 0, 0
    node, mean_ms = live.queue.clock[FREED], mean_run_ms(live.queue)
    for line in range(len(live.queue.first)):
        pod = live.queue.first[line]
        if pod == NOBODY or not fits(live.state, live.pods, node, live.stream.kinds[pod]):
            continue
        encode_first(live, pod, mean_ms, desk.rows[count])
        desk.going[count], desk.number[count] = pod, 0.0
        for term in range(TERMS):
            desk.number[count] += weights[term] * desk.rows[count, term]
        more = desk.number[count] - desk.number[best]
        if more > 0.0 or (more == 0.0 and pod < desk.going[best]):
            best = count
        count += 1
    if count == 0:
        return NOBODY
    at = drawn.count[0]
    if temperature > 0.0 and count > 1 and at < len(dice):
        best = draw_place(desk.number, count, temperature, dice[at])
        drawn.at_ms[at] = live.queue.clock[NOW_MS]
        for term in range(TERMS):
            mean = 0.0
            for place in range(count):
                mean += desk.number[place] * desk.rows[place, term]
            drawn.slope[at, term] = (desk.rows[best, term] - mean) / temperature
        drawn.count[0] += 1
    return int(desk.going[best])


@native()
def play_order(policy: int, live: Any, weights: Any, temperature: float, dice: Any, desk: Any, drawn: Any) -> None:
    """Pods come and go until time is over.

    Args:
        policy: a :class:`Policy`, by which a pod gets its node and GPUs.
        live: the cluster.
        weights: (TERMS,)
        temperature: of the softmax by which choices are drawn; 0: the largest number is taken.
        dice: (choices,) uniform numbers from 0 to below 1; what is beyond them is not drawn.
        desk: arrays to reckon with.
        drawn: filled in, with room for as many choices.
    """
    state, pods, typical, clock = live.state, live.pods, live.typical, live.queue.clock
    while True:
        pod = next_choice(live)
        if pod == NOBODY:
            return
        if pod == ROOM_MADE:
            if clock[RULE] == IN_ORDER:
                pod = who_fits(live)
            else:
                pod = choose_first(live, weights, temperature, dice, desk, drawn)
            if pod == NOBODY:
                clock[FREED] = NO_NODE
                continue
        kind, draws = live.stream.kinds[pod], live.stream.draws[pod]
        node = choose_node(policy, state, pods, typical, live.kept, kind, draws[0])
        begin_pod(live, pod, node, choose_gpus(policy, state, pods, typical, node, kind, draws[1]))


class Ordered:
    """A policy, with a rule of who goes first."""

    def __init__(self, weights: Mapping[str, float], policy: Policy = Policy.FGD) -> None:
        """
        Args:
            weights: by the name of a :class:`Term`; of others they are 0.
            policy: by which a pod gets its node and GPUs.

        Raises:
            InputError: there is no such term, or a weight is no number.
        """
        for name, weight in weights.items():
            if name not in Term.__members__:
                raise InputError(f"the order of a queue has no term {name!r}; {did_you_mean(name, Term.__members__)}")
            if not np.isfinite(weight):
                raise InputError(f"the order of a queue has the weight {weight} of {name}, must be a number")
        self.weights = np.array([weights.get(term.name, 0.0) for term in Term])
        self.policy = policy

    def play(self, live: Live) -> None:
        """Place pods until time is over."""
        self.play_drawing(live, 0.0, np.zeros(0))

    def play_drawing(self, live: Live, temperature: float, dice: NDArray[np.float64]) -> DrawnOrder:
        """The same, drawing as :func:`play_order` has it; gives what was drawn."""
        lines, drawn = len(live.queue.first), no_draws(len(dice))
        desk = Desk(np.zeros(lines, np.int64), np.zeros((lines, TERMS)), np.zeros(lines))
        play_order(int(self.policy), live, self.weights, temperature, dice, desk, drawn)
        return drawn


class OrderFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a learned rule is, and where it comes from."""

    weights: dict[str, float]
    algorithm: str
    command: str
    """That made it."""
    seed: int
    choices: int
    """That it was trained for."""
    versions: dict[str, str]


def learned_summary() -> str:
    """Where the shipped agent comes from, and its weights."""
    file = decoded(read_bytes(SHIPPED), OrderFile, str(SHIPPED))
    weights = ", ".join(f"{name} {weight:+.2f}" for name, weight in file.weights.items())
    return f"The agent was made by `{file.command}`, by {file.choices:,} choices. Its weights: {weights}."


def learned_order(path: Path | None = None) -> Ordered:
    """The rule of a file, with FGD.

    Args:
        path: of the file; ``None``: the agent that is shipped.

    Raises:
        InputError: it cannot be read, or is no such rule.
    """
    file = SHIPPED if path is None else path
    try:
        return Ordered(decoded(read_bytes(file), OrderFile, str(file)).weights)
    except InputError as error:
        raise error if str(file) in str(error) else InputError(f"{file}: {error}") from error
