"""The agent that chooses among rules: what it sees, how it decides, and how it is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.agents.policy_file import write_game_policy
from gpusched_env.envs.features import TenantFeature
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.play import play
from gpusched_env.games.drawn.agent.network import SHAPES, Weights, numbers_of
from gpusched_env.games.drawn.agent.policy import ChoicePolicyInfo
from gpusched_env.games.drawn.agent.rollouts import fork_at_first, fork_on_the_way, play_choices
from gpusched_env.games.drawn.agent.scheduler import ChoosingAgent
from gpusched_env.games.drawn.agent.seeing import REPERTOIRE, TENANTS, WIDTH
from gpusched_env.games.drawn.environment.env import DrawnEnv
from gpusched_env.games.drawn.environment.rules import RULES
from gpusched_env.games.drawn.problems.splits import drawn
from tests.refusals import refused

NAME = "tier-1-6"
WSPT = REPERTOIRE.index("wspt")


def weights(seed: int = 0) -> Weights:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0.0, 0.3, shape).astype(np.float32) for name, shape in SHAPES.items()}


def always(rule: int) -> Weights:
    found = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    found["all.2.bias"][rule] = 1.0
    return found


def in_turn() -> Weights:
    """Each rule after the other."""
    found = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    for choice in range(len(REPERTOIRE)):
        found["all.0.weight"][choice, choice - 2 * len(REPERTOIRE)] = 1.0
        found["all.2.weight"][(choice + 1) % len(REPERTOIRE), choice] = 1.0
    return found


def policy(path: Path, of: Weights) -> Path:
    write_game_policy(path, ChoicePolicyInfo(algorithm="all-actions-gradient"), of)
    return path


def rows(count: int) -> np.ndarray:
    found = np.random.default_rng(1).random((count, WIDTH)).astype(np.float32)
    tenants = found[:, :TENANTS].reshape(count, -1, len(TenantFeature))
    for row in range(count):
        tenants[row, :, TenantFeature.PRESENT] = 1.0
        tenants[row, row + 1 :] = 0.0
    return found


def test_the_network_that_decides_is_the_one_that_learns() -> None:
    torch = pytest.importorskip("torch")
    from gpusched_env.games.drawn.agent.learning import RuleNetwork

    network = RuleNetwork()
    shown = rows(8)
    exported = network.export()
    decided = np.array([numbers_of(exported, row) for row in shown])
    assert np.allclose(network(torch.from_numpy(shown)).detach().numpy(), decided, atol=1e-5)


def test_the_order_of_tenants_does_not_matter() -> None:
    row = rows(5)[4]
    turned = row.copy()
    tenants = turned[:TENANTS].reshape(-1, len(TenantFeature))
    tenants[:5] = tenants[4::-1].copy()
    assert not np.array_equal(row, turned)
    assert np.allclose(numbers_of(weights(), row), numbers_of(weights(), turned), atol=1e-5)


def test_an_agent_that_always_chooses_one_rule_does_what_that_rule_does(tmp_path: Path) -> None:
    problem = drawn(NAME).problem()
    agent = ChoosingAgent(policy(tmp_path / "wspt.npz", always(WSPT)), decision_us=0.0)
    alone = play("wspt", problem, 3).metrics.cost
    assert play(agent, problem, 3).metrics.cost == pytest.approx(alone, rel=1e-9)
    assert play_choices(problem, 3, lambda *_: WSPT)[0] == pytest.approx(alone, rel=1e-9)


def test_an_agent_decides_as_in_training_and_in_the_environment(tmp_path: Path) -> None:
    problem, of = drawn("tier-2-3").problem(), in_turn()
    chosen: list[int] = []

    def choose(_: int, row: object) -> int:
        chosen.append(int(numbers_of(of, row()).argmax()))  # type: ignore[operator]
        return chosen[-1]

    cost, decisions = play_choices(problem, 5, choose)
    assert decisions == len(chosen)
    assert chosen[:9] == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    agent = ChoosingAgent(policy(tmp_path / "any.npz", of), decision_us=0.0)
    assert play(agent, problem, 5).metrics.cost == pytest.approx(cost, rel=1e-9)
    env = DrawnEnv("tier-2-3")
    _, info = env.reset(seed=5, options={"scenario": "tier-2-3"})
    for rule in chosen:
        *_, info = env.step(RULES.index(REPERTOIRE[rule]))
    assert info["episode_metrics"]["cost"] == pytest.approx(cost, rel=1e-9)


def test_a_decision_takes_the_host_time(tmp_path: Path) -> None:
    problem, file = drawn("tier-2-3").problem(), policy(tmp_path / "any.npz", in_turn())
    at_once = play(ChoosingAgent(file, decision_us=0.0), problem, 5).metrics.cost
    late = play(ChoosingAgent(file, decision_us=900.0), problem, 5).metrics.cost
    assert at_once != late


def test_rules_are_tried_from_one_moment_on() -> None:
    fork = fork_at_first(NAME, 3)
    problem = drawn(NAME).problem()
    assert fork.row.shape == (WIDTH,)
    assert fork.costs[WSPT] == pytest.approx(max(play("wspt", problem, 3).metrics.cost, drawn(NAME).floor))
    on_the_way = fork_on_the_way(NAME, 3, always(WSPT), np.random.default_rng(2))
    assert on_the_way.costs.shape == (len(REPERTOIRE),)
    assert on_the_way.decisions > fork.decisions, "the way there is an episode, too"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    file = policy(tmp_path / "any.npz", weights())
    with refused(InputError, "decision_us", "-1"):
        ChoosingAgent(file, decision_us=-1.0)
    with refused(InputError, "interval_us", "0"):
        ChoosingAgent(file, interval_us=0.0)
    with refused(InputError, "none.npz"):
        ChoosingAgent(tmp_path / "none.npz")


@pytest.mark.long
def test_a_training_goes_on_as_if_there_had_been_no_end(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from gpusched_env.agents.training import train
    from gpusched_env.games.drawn.agent.trainer import ChoiceTraining

    def config(timesteps: int) -> ChoiceTraining:
        return ChoiceTraining(
            timesteps=timesteps,
            validation_seeds=1,
            validate_every=10**6,
            checkpoint_every=1,
            settings={"forks": 1, "passes": 2},
        ).checked()

    train(config(1), tmp_path / "parts")
    parts = train(config(5_000), tmp_path / "parts", resume=True)
    whole = train(config(5_000), tmp_path / "whole")
    assert [(entry.timesteps, entry.cost) for entry in parts.curve][-1] == (
        whole.curve[-1].timesteps,
        whole.curve[-1].cost,
    )
