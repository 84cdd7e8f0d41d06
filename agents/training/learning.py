"""Training with an algorithm of stable-baselines3 or sb3-contrib."""

from __future__ import annotations

from collections.abc import Callable

from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.logger import Logger

from gpusched_env.agents.training.algorithms import new_model
from gpusched_env.agents.training.boundary import Boundary
from gpusched_env.agents.training.course import Course
from gpusched_env.agents.training.environments import training_env
from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.imitation import imitate
from gpusched_env.agents.training.results import BOARD, FINAL
from gpusched_env.agents.training.tensorboard import EpisodeFigures
from gpusched_env.scheduling.scheduler import Scheduler


def learn(course: Course, teacher: Callable[[], Scheduler] | None) -> int:
    """Train until the configured number of decisions is reached, or the watcher ends it; returns their number.

    Args:
        course: of the training.
        teacher: makes the scheduler to imitate first, if the configuration names one.
    """
    config, board = course.config, course.board
    env = training_env(config)
    try:
        model = new_model(config, env, env.env.layout)
        model.set_logger(Logger(str(course.out / BOARD), [board]))
        boundary = Boundary(course)
        if course.resumes:
            boundary.restore(course.checkpoints.restore(model))
        elif config.imitation is not None and teacher is not None:
            figures = imitate(model, config, teacher)
            board.scalars({f"imitation/{name}": value for name, value in figures.items()}, 0)
        tenants = tuple(tenant.name for tenant in config.scenario.tenants)
        model.learn(
            config.timesteps - model.num_timesteps,
            callback=CallbackList([EpisodeFigures(env.env.layout, tenants), boundary]),
            reset_num_timesteps=not course.resumes,
        )
        with replacing(course.out / FINAL) as partial:
            model.save(partial)
    finally:
        env.close()
    return int(model.num_timesteps)
