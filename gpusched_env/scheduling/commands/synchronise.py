"""Letting a kernel run beside the one whose tiles it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.commands.world import any_synchronisable
from gpusched_env.scheduling.showing import Shown
from gpusched_env.scheduling.synchronising import (
    ORDERS,
    TileOrder,
    TilePolicy,
    first_unguarded_tile,
    pair_of,
    policy_misfit,
)


@dataclass(frozen=True, slots=True)
class Synchronise(AnyCommand):
    """Let a kernel run beside the one whose tiles it needs: its blocks wait for tiles, and it no longer for all of it.

    A block of the producer posts when it has ended (of several slices of a tile the last one, and they end in order). A
    block of the consumer works up to the first step whose semaphore was not posted, holds its slot, and goes on when it
    is. Without this command a consumer starts behind its producer (policy ``kernel``, stream order). Jangda et al.
    (cuSync, CGO 2024).

    Legal: ``view.pending.synchronisable`` is 1: it needs the tiles of a kernel (``view.pending.producer``) of another
    stream, it was never launched and no block of that has started, and neither this one nor another consumer of that
    kernel was synchronised before. The policy fits the grids, and covers what the consumer needs.

    Cost: no time of the GPU's host but that of the decision. A block takes ``post_us`` longer to post, ``wait_us`` for
    each wait, and ``order_us`` in an order that is not ``native``; a wait kernel ``wait_kernel_us``.
    """

    NAME: ClassVar = "synchronise"
    VERB: ClassVar = "synchronise tiles"
    NUMBERS: ClassVar = ("launch", "policy", "policy_size", "reorder", "order", "wait_kernel")
    anywhere: ClassVar = staticmethod(any_synchronisable)

    consumer: int
    """Launch id: ``view.pending.id``."""
    policy: TilePolicy
    """The posts that its blocks wait for."""
    order: TileOrder = "native"
    """The order in which blocks of both kernels take their tiles: ``native`` as the GPU hands them out; the others from
    a counter: ``row-major`` likewise; ``grouped``, where the consumer reads several matrices side by side: those of the
    producer's tiles that it reads together one after the other; ``column-major``: rows fastest. A kernel in two pairs
    has the order that it was given last."""
    wait_kernel: bool = False
    """Whether a kernel of one thread keeps the consumer back until a block of the producer has started. Without one,
    blocks of a consumer that is launched too early take the slots that its producer needs."""

    @property
    def launch_id(self) -> int:
        return self.consumer

    def numbers(self) -> tuple[int, ...]:
        kind, policy_size, reorder = self.policy.numbers()
        return self.consumer, kind, policy_size, reorder, ORDERS.index(self.order), int(self.wait_kernel)

    @classmethod
    def of(cls, *numbers: int) -> Synchronise:
        launch, kind, policy_size, reorder, order, wait_kernel = numbers
        return cls(launch, TilePolicy.of(kind, policy_size, reorder), ORDERS[order], wait_kernel == 1)

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        pending = view.pending
        rows = np.flatnonzero(pending.id == self.consumer)
        if not rows.size or not pending.synchronisable[rows[0]]:
            legal = pending.id[pending.synchronisable == 1.0].astype(int).tolist()
            why = f"launch {self.consumer} needs no tiles, was launched, or it or its producer was synchronised before"
            if rows.size and pending.producer[rows[0]] in view.running.id[view.running.started == 1.0]:
                why = f"launch {pending.producer[rows[0]]:.0f}, whose tiles launch {self.consumer} needs, has started"
            if not rows.size:
                why = f"launch {self.consumer} is not pending"
            raise IllegalCommand(f"{self}: {why}; synchronisable now: {legal[:10]}")
        policy, kernels = self.policy, problem.kernels
        producer, consumer = int(pending.producer[rows[0]]), operation_of(self.consumer)
        made, used = (kernels[identity].kernel for identity in (operation_of(producer).identity, consumer.identity))
        pair = pair_of(policy, made, used, consumer.needs)
        wrong = policy_misfit(policy, pair, consumer.needs)
        if wrong:
            raise IllegalCommand(f"{self}: {wrong}")
        early = first_unguarded_tile(pair, consumer.needs.steps, policy.steps)
        if early is not None:
            raise IllegalCommand(
                f"{self}: policy {policy} is too weak: tile {early.tile} of launch {self.consumer} would read tile "
                f"{early.read} of launch {producer} in its step {early.step}, and waits for no post of that before"
            )
