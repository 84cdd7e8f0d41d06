"""Infos of the environments are dictionaries whose deep copies share nothing that can be changed."""

from __future__ import annotations

import copy

import numpy as np

from gpusched_env.envs.env import GpuSchedulingEnv


def test_deep_copies_of_an_info_share_nothing_that_can_be_changed() -> None:
    env = GpuSchedulingEnv("Toy")
    _, info = env.reset(seed=3)
    info["nested"] = {"list": [1.0]}
    kept = info["action_mask"].copy()
    copied = copy.deepcopy([info])[0]
    assert isinstance(copied, dict)
    assert copied.keys() == info.keys()
    info["action_mask"][:] = 5
    info["nested"]["list"].append(2.0)
    info["time_us"] = -1.0
    np.testing.assert_array_equal(copied["action_mask"], kept)
    assert copied["nested"] == {"list": [1.0]}
    assert copied["time_us"] == 0.0
    assert copied["seed"] == 3
