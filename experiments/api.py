"""What is used from Python and in notebooks, at the top level of the package: everything takes names.

Heavy libraries (worker processes, statistics, tables) are imported by what needs them: :func:`run_episode` and
:func:`make_scheduler` do without.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_env.experiments.lib.names import DeviceSource, SchedulerSource, is_learned, new_scheduler
from gpusched_env.experiments.lib.play import play
from gpusched_env.scenarios.problem import Problem, build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.session import Episode
from gpusched_env.scheduling.timeline import Detail

if TYPE_CHECKING:
    from gpusched_env.experiments.comparison import Comparison
    from gpusched_env.experiments.ranking.result import Ranking


def make_scheduler(source: SchedulerSource) -> Scheduler:
    """A new scheduler.

    Args:
        source: a name (``gpusched schedulers``) with or without options, ``mps(share=50)``; ``file.py:Name`` or
            ``package.module:Name``; ``learned`` or ``learned:PATH``; a class.

    Raises:
        InputError: no such scheduler, or an option that it does not have.
    """
    return new_scheduler(source)


def run_episode(
    scenario: str | Path | Scenario | Problem,
    scheduler: SchedulerSource,
    seed: int = 0,
    *,
    device: DeviceSource = "compiled",
    record: Detail = "kernels",
    **fields: Any,
) -> Episode:
    """Run one scheduler for one episode; the result shows its figures, and has ``to_frame()`` and ``plot``.

    Args:
        scenario: a name, a ``.yaml`` file, a scenario, or a problem that was built of one.
        scheduler: as for :func:`make_scheduler`, or an object.
        seed: of arrivals and durations.
        device: a device's name, or a factory.
        record: what is kept: ``jobs``, ``kernels``, or also ``blocks`` on SMs.
        fields: of the scenario, to replace: ``gpu="h200-sxm"``, ``horizon_us=20_000``.

    Raises:
        InputError: an unknown name or field.
        IllegalCommand, DeadlockError: from the episode.
        GpuschedError: a scheduler of one's own failed; names the line.
    """
    problem = scenario if isinstance(scenario, Problem) else build_problem(_scenario(scenario, fields))
    return play(scheduler, problem, seed, device=device, record=record)


def compare(
    scenario: str | Path | Scenario,
    schedulers: str | Sequence[SchedulerSource] | Mapping[str, SchedulerSource] | None = None,
    seeds: int | Sequence[int] = 5,
    **options: Any,
) -> Comparison:
    """Run every scheduler on every seed: :func:`gpusched_env.experiments.compare.compare` says what it takes.

    Without ``schedulers``: all registered ones, and the agent that is shipped for the scenario. Other keywords replace
    fields of the scenario: ``gpu="h200-sxm"``, ``horizon_us=20_000``.

    Raises:
        InputError: also for a keyword that is neither.
    """
    from gpusched_env.experiments.compare import compare

    own = inspect.signature(compare).parameters.keys() & options.keys()
    fields = {name: value for name, value in options.items() if name not in own}
    return compare(_scenario(scenario, fields), schedulers, seeds, **{name: options[name] for name in own})


def evaluate(
    model: str | Path,
    scenario: str | Path | Scenario,
    schedulers: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 5,
    **options: Any,
) -> Comparison:
    """Compare a trained scheduler with others; differences are taken against it.

    Args:
        model: folder of a training, the file of a policy, or ``learned``: the one that is shipped for the scenario.
        scenario, seeds, options: as for :func:`compare`.
        schedulers: what to compare with; by default all that are registered.
    """
    from gpusched_env.baselines.registry import honest_names

    agent = str(model) if is_learned(str(model)) else f"learned:{model}"
    return compare(scenario, [agent, *(schedulers or honest_names())], seeds, **options)


def rank(
    scenarios: str | Sequence[str],
    schedulers: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 10,
    **options: Any,
) -> Ranking:
    """Rank schedulers by cost over seeds and variants: :func:`gpusched_env.experiments.ranking.run.rank`."""
    from gpusched_env.experiments.ranking.run import rank

    return rank(scenarios, schedulers, seeds, **options)


def _scenario(scenario: str | Path | Scenario, fields: dict[str, Any]) -> Scenario:
    from gpusched_env.scenarios.scenario import override

    found = scenario if isinstance(scenario, Scenario) else load_scenario(str(scenario))
    return override(found, **fields)
