"""Splits are what they are called, and stay as they were frozen."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.drawn.problems import gpus, networks, splits
from gpusched_env.games.drawn.problems.arrivals import Kind, draw_arrivals
from gpusched_env.games.drawn.problems.distribution import Distribution, Draft, draw_draft, is_unusual
from gpusched_env.games.drawn.problems.drawing import FLOOR
from gpusched_env.games.drawn.problems.networks import ENGINE
from gpusched_env.games.drawn.problems.splits import FROZEN, JUDGED, SPLITS, TIERS, drawn, frozen, hash_of, names_of
from gpusched_env.workload.tenant import ClosedLoop, Trace
from gpusched_env.workload.trace_replay import replay_of
from tests.refusals import refused

DRAFTS = 300


def drafts(split: str) -> list[Draft]:
    return [draw_draft(np.random.default_rng(seed), SPLITS[split]) for seed in range(DRAFTS)]


def test_all_splits_are_frozen() -> None:
    assert list(frozen()) == list(JUDGED)
    assert {len(kept) for kept in frozen().values()} == {FROZEN}
    assert all(kept.floor > 0.0 for split in frozen().values() for kept in split)


@pytest.mark.parametrize("split", JUDGED)
def test_a_scenario_is_the_one_that_was_frozen(split: str) -> None:
    found, again = drawn(f"{split}-1"), drawn(f"{split}-1")
    assert found == again
    assert hash_of(found) == frozen()[split][1].hash
    assert found.floor == pytest.approx(FLOOR * found.at_stake, rel=0.01)
    assert found.problem().scenario.name == f"{split}-1"


@pytest.mark.long
def test_all_scenarios_can_be_played() -> None:
    for name in names_of("combinations", 20):
        assert drawn(name).problem().gpu == drawn(name).gpu


def test_another_scenario_in_its_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPLITS, "draws", Distribution(tenants=(2, 2)))
    with refused(InputError, "draws-1", "frozen"):
        drawn("draws-1")


@pytest.mark.parametrize("name", ["draw-1", "draws", "draws-01", "draws--1", "tier-9-1"])
def test_unknown_names_are_refused(name: str) -> None:
    with refused(InputError, "draw"):
        drawn(name)


def test_nothing_unseen_is_trained_on() -> None:
    seen = set(networks.SEEN.services) | set(networks.SEEN.best_effort)
    assert seen.isdisjoint((*networks.UNSEEN.services, *networks.UNSEEN.best_effort))
    assert set(gpus.SEEN).isdisjoint(gpus.UNSEEN)
    for draft in drafts("train"):
        assert {tenant.workload for tenant in draft.tenants} <= {*seen, ENGINE}
        assert draft.gpu.name.removesuffix(gpus.VARIED) in gpus.SEEN
        assert 0.4 <= draft.load <= 1.4
        assert {tenant.kind for tenant in draft.tenants}.isdisjoint({"periodic", "recorded"})
        assert not is_unusual(draft)


def test_each_split_departs_as_it_is_called() -> None:
    assert all(draft.gpu.name.removesuffix(gpus.VARIED) in gpus.UNSEEN for draft in drafts("gpu"))
    unseen = {*networks.UNSEEN.services, *networks.UNSEEN.best_effort}
    assert all(tenant.workload in unseen for draft in drafts("networks") for tenant in draft.tenants)
    assert all(not 0.4 < draft.load < 1.4 for draft in drafts("loads"))
    assert all(is_unusual(draft) for draft in drafts("combinations"))
    assert max(len(draft.tenants) for draft in drafts("combinations")) == 12
    for tier, most in zip(TIERS, (2, 4, 6), strict=True):
        assert max(len(draft.tenants) for draft in drafts(tier)) == most
        assert {draft.knowledge for draft in drafts(tier)} <= {"right", "scattered"}


KINDS: tuple[Kind, ...] = ("poisson", "bursts", "regimes", "periodic", "recorded")


@pytest.mark.parametrize("kind", KINDS)
def test_arrivals_come_at_the_rate_that_is_asked_for(kind: Kind) -> None:
    for seed in range(20):
        found = draw_arrivals(np.random.default_rng(seed), kind, 123.0, 500.0)
        jobs_a_us = replay_of(found).jobs_a_us if isinstance(found, Trace) else found.jobs_a_us
        assert jobs_a_us * 1e6 == pytest.approx(123.0, rel=0.02)


def test_a_client_that_waits_for_answers_reaches_the_rate_alone() -> None:
    found = draw_arrivals(np.random.default_rng(0), "closed-loop", 100.0, 4_000.0)
    assert found == ClosedLoop(think_us=6_000.0)


def test_the_recorded_arrivals_are_those_of_the_example() -> None:
    """Counts of docs/examples/mooncake_conversation.jsonl, which has its licence beside it."""
    from pathlib import Path

    file = Path(__file__).parents[3] / "docs" / "examples" / "mooncake_conversation.jsonl"
    steps = [round(msgspec.json.decode(line)["timestamp"] / 3000) for line in file.read_text().splitlines()]
    from gpusched_env.games.drawn.problems.arrivals import RECORDED

    assert tuple(np.bincount(steps)) == RECORDED


def test_freezing_leaves_what_is_frozen(capsys: pytest.CaptureFixture[str]) -> None:
    from gpusched_env.games.drawn.problems.freezing import freeze

    freeze()
    assert capsys.readouterr().out == ""
    assert splits.frozen() == frozen()
