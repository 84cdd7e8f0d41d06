"""A wrapper for episodes that other wrappers cut."""

from __future__ import annotations

from typing import Any, SupportsFloat, TypeVar

import gymnasium

Seen = TypeVar("Seen")
Act = TypeVar("Act")


class EpisodeMetrics(gymnasium.Wrapper[Seen, Act, Seen, Act], gymnasium.utils.RecordConstructorArgs):
    """Adds ``episode_metrics`` to the last info of an episode that a wrapper inside cuts, such as ``TimeLimit``.

    That wrapper says that an episode is over, and the environment cannot know. For environments of all games:
    ``EpisodeMetrics(gym.make(env_id, max_episode_steps=500))``; or without it, ``env.unwrapped.summary()`` at any time.
    """

    def __init__(self, env: gymnasium.Env[Seen, Act]) -> None:
        """Wrap ``env``, which is one of this package's with wrappers around it."""
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def step(self, action: Act) -> tuple[Seen, SupportsFloat, bool, bool, dict[str, Any]]:
        """As the environment does."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and "episode_metrics" not in info:
            info = {**info, **self.env.get_wrapper_attr("summary")()}
        return observation, reward, terminated, truncated, info
