"""Environments in which tiles are synchronised: what is seen of pairs, on every path, and that nothing hangs."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from gpusched_env.devices import make_device
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.encoding import LOG_SCALE
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.features import PendingFeature, RunningFeature
from gpusched_env.envs.observations import ObservationEncoder
from gpusched_env.errors import IllegalCommand
from gpusched_env.scheduling.commands import Launch, Synchronise, TilePolicy
from gpusched_env.scheduling.view import PendingColumn as C
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import TileNeeds
from tests.devices.problems import new_device
from tests.devices.programs import chain
from tests.devices.test_reshape import product
from tests.envs.same import assert_same

P, R = PendingFeature, RunningFeature
BOTH = ["compiled", "reference"]


def make(device: str, **changes: Any) -> GpuSchedulingEnv:
    env = gymnasium.make("gpusched/DependentKernels-v0", device=device, **changes).unwrapped
    assert isinstance(env, GpuSchedulingEnv)
    return env


def observed(built: Any, *commands: Any) -> tuple[Any, Any]:
    """Pending and running rows of a chain, after some commands."""
    device = new_device()
    view = device.reset(built, 0)
    for command in commands:
        device.apply(command)
        view = device.advance()
    layout = ActionLayout(1, 4, (0,), lookahead=4, synchronises=True)
    observation = ObservationEncoder.of(layout).encode(view if view is not None else device.view())
    return observation["pending"], observation["running"]


def test_what_is_seen_of_a_pair() -> None:
    """Two products of six tiles take three waves on four SMs instead of four, by any policy."""
    (producer, consumer, *_), _ = observed(chain((2, 3, 1), (2, 3, 2)))
    assert not producer[P.GAIN_ROW :].any()
    assert consumer[[P.ROWS, P.COLUMNS, P.SLICES, P.FOLD]] == pytest.approx([3 / 11, 2 / 10, 2 / 6, 1 / 2])
    assert consumer[[P.SYNCHRONISABLE, P.PRODUCER, P.LATE, P.POLICY]].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert consumer[P.PRODUCER_PROFILED] == producer[P.PROFILED]
    # Two columns, of which each of two slices goes through one.
    assert consumer[P.WAITS] == pytest.approx(1 / 9)


def test_scores_wait_for_a_tile_of_two_bands_in_each_step() -> None:
    """Six columns of queries, keys and values are two steps through each of three matrices."""
    needs = TileNeeds("product", fold=3)
    (_, consumer, *_), _ = observed(chain((6, 2, 1), (2, 2, 1), needs=needs))
    # Two steps, of two tiles each.
    assert consumer[P.WAITS] == pytest.approx(4 / 12)


def test_gains_are_those_of_a_list_schedule() -> None:
    (_, consumer, *_), _ = observed(chain((2, 3, 1), (2, 3, 1)))
    assert consumer[P.GAIN_ROW] == pytest.approx(0.25)
    # By columns the first wave has one row and the first tiles of the others: of the consumer's six blocks one ends at
    # 20, four at 30, the last one at 40.
    assert consumer[P.GAIN_ROW_COLUMNS] == 0.0
    (_, fused, *_), _ = observed(chain((6, 1, 1), (1, 1, 1), us=(10.0, 3.0), needs=TileNeeds(fold=2)))
    # 23 us in stream order. By number, tiles 0 to 3 are there at 10: those of the first step only. Grouped, of two.
    gains = [fused[column] for column in (P.GAIN_ROW, P.GAIN_TILE, P.GAIN_TILE_GROUPED)]
    assert gains == pytest.approx([0.0, 1 / 23, 2 / 23])


def test_only_what_can_be_synchronised_has_gains() -> None:
    built = chain((2, 3, 1), (2, 3, 1), (2, 3, 1))
    row = TilePolicy("row", reorder=True)
    (producer, consumer, last, _), _ = observed(built, Synchronise(1, row))
    assert producer[P.POSTS] == consumer[P.POLICY] == pytest.approx(0.4)
    assert not consumer[P.GAIN_ROW :].any()
    assert (last[P.SYNCHRONISABLE], last[P.LATE]) == (1.0, 0.0)
    assert last[P.GAIN_ROW] > 0.0
    (_, waiting, last, _), _ = observed(built, Synchronise(1, row, wait_kernel=True))
    assert (waiting[P.POLICY], last[P.LATE]) == pytest.approx((0.4, 1.0))
    _, (first, second, *_) = observed(built, Synchronise(1, TilePolicy("tile")), Launch(0), Launch(1))
    assert (first[R.POSTS], first[R.POLICY], second[R.POSTS], second[R.POLICY]) == pytest.approx((0.6, 0.0, 0.0, 0.6))


def test_what_is_seen_of_a_form() -> None:
    """Eight tiles in two waves of 10 us, and a consumer of two blocks: 30 us in stream order, and by row, as the slots
    are taken. In the form of two tiles of 12 us the consumer waits beside them: 22 us."""
    (producer, consumer, *_), _ = observed(product(((2, 4, 1), 10.0), ((1, 2, 1), 12.0), consumer=(1, 2, 1)))
    columns = [P.FORM1_WAVES, P.FORM1_BLOCK_SHARE, P.FORM1_ROWS, P.FORM1_COLUMNS, P.FORM1_SLICES, P.FORM1_GAIN]
    assert producer[columns] == pytest.approx([1 / 3, 1.0, 2 / 10, 1 / 9, 1 / 5, 1.0 - 22 / 30])
    assert producer[P.FORM1_PROFILED] == pytest.approx(np.log1p(12.0) / LOG_SCALE)
    assert not producer[P.FORM2_PROFILED :].any()
    assert not consumer[P.FORM1_PROFILED :].any()


def test_both_devices_show_the_same_whatever_is_done() -> None:
    for seed in range(4):
        ends = []
        environments = [make(device, tenants={"model": {"jobs": 2}}) for device in BOTH]
        rng = np.random.default_rng(seed)
        steps = [env.reset(seed=seed) for env in environments]
        assert_same(steps[0], steps[1], 1e-6)
        kinds = set()
        for _ in range(60):
            legal = np.flatnonzero(environments[0].action_masks())
            action = int(rng.choice(legal))
            kinds.add(environments[0].layout.split(action)[0])
            ends = [env.step(action) for env in environments]
            assert_same(ends[0], ends[1], 1e-6)
            if ends[0][2] or ends[0][3]:
                break
        assert kinds >= {"launch", "synchronise"}


@pytest.mark.parametrize("scenario", ["DependentKernels", "DependentKernelsShared"])
def test_no_sequence_of_legal_actions_ends_in_a_deadlock(scenario: str) -> None:
    """It would be an error of the device."""
    changes = {"model": {"jobs": 3}} | ({"service": {"jobs": 3}} if scenario.endswith("Shared") else {})
    for priorities in ([0], [0, -1]):
        env = GpuSchedulingEnv(scenario, stream_priorities=priorities, tenants=changes)
        rng = np.random.default_rng(0)
        for seed in range(20):
            env.reset(seed=seed)
            over = False
            while not over:
                action = int(rng.choice(np.flatnonzero(env.action_masks())))
                _, _, over, truncated, _ = env.step(action)
                assert not truncated


def test_a_consumer_goes_behind_its_producer() -> None:
    """Before it, or in front of it, it could take the slots that its producer needs."""
    built = chain((2, 3, 1), (2, 3, 1), (2, 3, 1))
    layout = ActionLayout(1, 4, (0, -1), lookahead=4, synchronises=True)
    device, row = new_device(), TilePolicy("row")

    def legal(*commands: Any) -> list[str]:
        view = device.reset(built, 0)
        for command in commands:
            device.apply(command)
            view = device.advance()
        assert view is not None
        actions = np.flatnonzero(layout.mask(view)).tolist()
        return [layout.describe(action, ("t",)) for action in actions if layout.split(action)[0] == "launch"]

    def launches(*which: str) -> list[str]:
        return [f"launch pending kernel {k} of t: stream priority {p}" for k, p in (each.split(":") for each in which)]

    assert legal() == launches("0:0", "0:-1")
    assert legal(Synchronise(1, row)) == launches("0:0", "0:-1")
    assert legal(Synchronise(1, row), Launch(0, 0)) == launches("0:0")
    assert legal(Synchronise(1, row), Launch(0, -1)) == launches("0:0", "0:-1")
    assert legal(Synchronise(1, row), Synchronise(2, row), Launch(0, 0), Launch(1, 0)) == launches("0:0")


def test_a_consumer_whose_producer_is_late_needs_a_wait_kernel() -> None:
    """By default kernel 1 starts behind kernel 0, and a consumer of its tiles could be there first."""
    built = chain((2, 3, 1), (2, 3, 1), (2, 3, 1))
    layout = ActionLayout(1, 4, (0,), lookahead=4, synchronises=True)
    device, row = new_device(), TilePolicy("row")

    def without(*commands: Any) -> set[bool]:
        """Whether the last pair can be synchronised without a wait kernel."""
        view = device.reset(built, 0)
        for command in commands:
            device.apply(command)
            view = device.advance()
        first, ways = layout.first("synchronise"), layout.choices("synchronise")
        legal = layout.mask(view)[first + 2 * ways : first + 3 * ways]
        assert legal[1::2].all()
        return set(legal[::2].tolist())

    assert without() == {False}
    assert without(Synchronise(1, row)) == {True}
    assert without(Synchronise(1, row, wait_kernel=True)) == {False}


KINDS = [TileNeeds(), TileNeeds("tile"), TileNeeds("share"), TileNeeds("product", fold=2)]
NEEDS = [*KINDS, TileNeeds(fold=2), TileNeeds(steps=9)]


@pytest.mark.parametrize("needs", NEEDS, ids=str)
def test_the_mask_is_what_a_device_accepts_and_cannot_hang(needs: TileNeeds) -> None:
    # A product reads the row that is its column: rows divide columns.
    rows = 2 if needs.kind == "product" else 3
    built = chain((4, rows, 2), (4, rows, 1), (4, rows, 3), needs=needs)
    layout = ActionLayout(1, 4, (0,), lookahead=4, synchronises=True)

    def try_all(*before: Any) -> set[bool]:
        device = make_device("reference")
        view = device.reset(built, 0, snapshots=True)
        for command in before:
            device.apply(command)
            view = device.advance()
        snapshot = device.snapshot()
        legal = layout.mask(view)
        for action in range(1, layout.n):
            try:
                command = layout.decode(action, view, wait_us=1.0, streams=built.streams)
                device.apply(command)
                accepted = layout.action_of(command, view, streams=built.streams) == action
            except IllegalCommand:
                accepted = False
            assert (accepted and not can_hang(command, view)) == legal[action], layout.describe(action)
            view = device.restore(snapshot)
        return set(legal[layout.first("synchronise") :].tolist())

    def can_hang(command: Any, view: View) -> bool:
        """A consumer before its producer, or beside one that waits, without a wait kernel."""
        rows = {int(row[C.ID]): row for row in view.pending.array}
        if isinstance(command, Launch):
            row = rows[command.launch]
            return bool(row[C.POLICY] > 0 and int(row[C.PRODUCER]) in rows)
        producer = rows[int(rows[command.consumer][C.PRODUCER])]
        return bool(not command.wait_kernel and producer[C.UPSTREAM] > 0)

    assert try_all() == {True, False}
    once = TilePolicy("share" if needs.kind == "share" else "row")
    assert try_all(Synchronise(1, once, "grouped")) == {True, False}
    assert try_all(Synchronise(1, once), Launch(0)) == {True, False}
    assert try_all(Launch(0)) == {True, False}
    assert try_all(Launch(0), Launch(1)) == {False}
