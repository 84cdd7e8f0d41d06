"""Saved states go back into what they were saved of, and nowhere else."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from gpusched_env import build_problem, load_scenario, make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from tests.refusals import refused
from tests.robustness.playing import play, started

TOY = load_scenario("Toy")


def test_a_state_goes_back_into_an_environment_like_its_own_only() -> None:
    env, reference = started(), started(device="reference")
    more_slots, other = started(slots=4), GpuSchedulingEnv("InferenceBesideTraining")
    other.reset(seed=0)
    envs = GpuSchedulingVectorEnv("Toy", num_envs=1)
    envs.reset(seed=0)
    foreign = ["x", None, 5, more_slots.save_state(), other.save_state(), envs.save_state()]
    for state in foreign:
        with pytest.raises(InputError, match=r"state|snapshot"):
            env.restore_state(state)  # type: ignore[arg-type]
    for state in ("x", env.save_state()):
        with refused(InputError, "state"):
            envs.restore_state(state)  # type: ignore[arg-type]
    with refused(InputError, "state"):
        reference.restore_state(env.save_state())
    envs.close()
    assert play(env) == play(reference) == play(started())


def test_the_reference_device_plays_on_what_it_began() -> None:
    """An environment that began on it, while the compiled device was built, may be gone back to at any time."""
    reference, either = started(device="reference"), started()
    state = reference.save_state()
    play(either)
    either.restore_state(state)
    assert play(either) == play(reference) == play(started())


@pytest.mark.parametrize("kind", ["environment", "environments", "device"])
def test_damaged_states_are_refused(kind: str) -> None:
    """Truncated anywhere, or one bit changed: pickle's own error or ours, never another state than the saved one."""
    maker = {"environment": started, "environments": lambda: GpuSchedulingVectorEnv("Toy", num_envs=2)}
    if kind == "device":
        device = make_device("compiled")
        device.reset(build_problem(TOY), 0)
        state: Any = device.snapshot()
    else:
        env: Any = maker[kind]()
        env.reset(seed=0)
        state = env.save_state()
    whole, rng = pickle.dumps(state), np.random.default_rng(0)
    for number in range(300):
        damaged = bytearray(whole)
        if number % 3 == 0:
            del damaged[int(rng.integers(len(whole))) :]
        else:
            damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                again = pickle.loads(bytes(damaged))
            except Exception:
                continue
        # The bit was in a part of the pickle that does not matter, such as the name of a memo or the protocol.
        assert isinstance(again, bytes | bytearray | str | type(state)) or again is None, again
        if isinstance(again, type(state)):
            assert len(pickle.dumps(again)) == len(whole)


def test_a_state_survives_its_pickle() -> None:
    env = started()
    env.step(1)
    state = pickle.loads(pickle.dumps(env.save_state()))
    expected = [env.step(0)[1] for _ in range(2)]
    fresh = GpuSchedulingEnv("Toy")
    fresh.restore_state(state)
    assert [fresh.step(0)[1] for _ in range(2)] == expected


@pytest.mark.parametrize("travelled", [False, True])
def test_a_state_cannot_be_changed_in_memory(travelled: bool) -> None:
    """Numbers in it are places in memory: nothing of it can be written to, and what was replaced is refused."""
    device = make_device("compiled")
    device.reset(build_problem(TOY), 0)
    state: Any = device.snapshot()
    if travelled:
        state = pickle.loads(pickle.dumps(state))
    for section in state.sections.values():
        with refused(ValueError, "WRITEABLE"):
            section.setflags(write=True)
    device.restore(state)
    state.sections["clients"] = state.sections["clients"].copy()
    with refused(InputError, "clients"):
        device.restore(state)


def test_counters_of_a_state_cannot_be_changed() -> None:
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    envs.reset(seed=0)
    envs.step([1, 1])
    for state in (envs.save_state(), pickle.loads(pickle.dumps(envs.save_state()))):
        for values in state.counters.values():
            with refused(ValueError, "WRITEABLE"):
                values.setflags(write=True)
        kept = dict(state.counters)
        for wrong in (kept["costs"].copy(), kept["costs"][:1], "x", None):
            state.counters["costs"] = wrong
            with refused(InputError, "costs"):
                envs.restore_state(state)
        state.counters["costs"] = kept["costs"]
        envs.restore_state(state)
    envs.close()
