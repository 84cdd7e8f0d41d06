"""Schedulers by name."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

from gpusched_env import baselines
from gpusched_env.baselines.at_intervals import AtIntervals
from gpusched_env.baselines.fikit import Fikit
from gpusched_env.baselines.mps import Mps
from gpusched_env.baselines.registry import default_options, describe, honest_names, make_scheduler, scheduler_names
from gpusched_env.baselines.rehearsal import JobList
from gpusched_env.errors import InputError
from gpusched_env.scheduling.contract import Scheduler, is_clairvoyant
from tests.refusals import refused


def test_every_scheduler_of_the_package_has_a_name() -> None:
    modules = [import_module(f"{baselines.__name__}.{found.name}") for found in iter_modules(baselines.__path__)]
    defined = {
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and hasattr(kind, "decide")
    }
    named = {type(make_scheduler(name)) for name in scheduler_names()}
    assert len(named & defined) > 30
    # Others play a list of jobs through one, or have a rule's name with a prefix.
    assert {kind for kind in defined if not inspect.isabstract(kind)} - {JobList, AtIntervals} <= named


def test_those_that_are_told_the_truth_are_set_apart() -> None:
    told = {name for name in scheduler_names() if is_clairvoyant(make_scheduler(name))}
    assert (
        set(scheduler_names()) - set(honest_names())
        == told
        == {"sjf-clairvoyant", "hindsight", "cusync-search", "critical-path", "slo-aware-ideal"}
    )


def test_every_scheduler_can_be_made_and_is_described_in_a_line() -> None:
    lines = {name: describe(name) for name in scheduler_names()}
    assert all(isinstance(make_scheduler(name), Scheduler) for name in lines)
    assert len(set(lines.values())) == len(lines)
    assert all(line.endswith(".") and 20 < len(line) < 120 for line in lines.values())


def test_each_call_makes_a_new_one() -> None:
    assert make_scheduler("exclusive") is not make_scheduler("exclusive")


def test_options_reach_the_scheduler() -> None:
    assert isinstance(make_scheduler("mps", share=50), Mps)
    with refused(InputError, "is 0", "share"):
        make_scheduler("mps", share=0)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pass-trough", {}, "unknown scheduler 'pass-trough'; did you mean 'pass-through'"),
        ("mps", {"shares": 50}, "scheduler 'mps' has no option 'shares'; did you mean 'share'"),
        ("random", {"share": 50}, "scheduler 'random' has no option 'share'; it has no options"),
    ],
)
def test_errors_say_what_would_be_right(name: str, options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scheduler(name, **options)


def test_options_may_follow_the_name() -> None:
    made = make_scheduler("fikit(epsilon_us=50, contexts=per-tenant)", interception_us=2.5)
    assert isinstance(made, Fikit)
    assert (made.set_up.contexts, made.set_up.interception_us) == ("per-tenant", 2.5)


def test_default_options_are_listed() -> None:
    assert default_options("time-slicing") == {"slice_us": None}
    assert default_options("random") == {}


def test_describe_of_an_unknown_name() -> None:
    with refused(InputError, "did you mean 'sjf'"):
        describe("sjff")
