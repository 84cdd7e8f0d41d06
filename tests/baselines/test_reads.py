"""What schedulers say they read is what they read: the rest may be anything, and they decide the same."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.baselines.registry import make_scheduler, means, scheduler_names
from gpusched_env.envs.features import TABLES
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib import hiding
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.contract import is_clairvoyant
from gpusched_env.scheduling.reads import PARTS, TRUTH, reads_of
from tests.baselines.instances import quick
from tests.refusals import refused

OPTIONS = [
    "mps(urgent_share=50,client_priority=true)",
    "time-slicing(slice_us=500)",
    *(f"{name}(in_flight=4)" for name in ("fifo", "sjf", "sjf-clairvoyant", "wfq")),
    *(f"{name}(classes=one)" for name in ("wspt", "srpt", "edf", "llf")),
    "triage(worth=1.0)",
    "wspt(classes=one,time=remaining,weight=slowdown)",
    "clockwork(concurrent=2,margin=1.5)",
    "clockwork(schedule_ahead_us=2000,streams=ranked,estimate=measured)",
    "nexus(parallel=true)",
    "paella(extra=0,unfairness=2)",
    "tgs(contexts=shared,period_us=500,classes=2)",
    "gpreempt(hint=false,classes=2)",
    "preemptive-priority(keep_open_us=100)",
    "preemptive-priority(fine=false,reserved=0.25)",
    "orion(search_slowdown=1.2,turns=priority)",
    "orion(reference_us=none)",
    *(f"{name}(classes=2)" for name in ("orion", "reef", "tally", "lithos")),
    "reef(recall=false)",
    "xsched(policy=kedf)",
    "xsched(policy=lax)",
    "xsched(level=3)",
]
"""Choices that read something else than the default, or that do so in another way."""


@functools.cache
def built(windowed: bool) -> Problem:
    """Eight tenants of three classes, with weights and objectives, or of a graph."""
    if windowed:
        return build_problem(load_scenario("KernelGraph", horizon_us=1000.0))
    return build_problem(load_scenario("MultiTenantBurst", horizon_us=6000.0))


@functools.cache
def decisions(spec: str, hidden: tuple[str, ...] = ()) -> hiding.Decisions | None:
    """Of an episode in which parts are hidden; ``None``: it came to an illegal command."""
    return hiding.decisions(
        make_scheduler(spec), built(spec.partition("(")[0] in scheduler_names(windowed=True)), hidden
    )


@pytest.mark.parametrize("name", scheduler_names())
def test_every_scheduler_declares_what_it_reads(name: str) -> None:
    scheduler = make_scheduler(name)
    declared = reads_of(scheduler)
    assert declared is not None
    assert declared == means(name)[0]
    assert (TRUTH in declared) == is_clairvoyant(scheduler)


@pytest.mark.long
@pytest.mark.parametrize("spec", [*map(quick, scheduler_names()), *OPTIONS])
def test_nothing_that_is_not_declared_changes_a_decision(spec: str) -> None:
    declared = reads_of(make_scheduler(spec)) or ()
    assert decisions(spec, tuple(word for word in PARTS if word not in declared)) == decisions(spec)


USED = {
    "priority-streams": "priorities",
    "mps(urgent_share=50,client_priority=true)": "priorities",
    "exclusive": "priorities requests",
    "fifo": "completions",
    "sjf": "requests profiles completions",
    "wfq": "weights profiles completions",
    "clockwork": "requests",
    "orion": "priorities requests profiles demands shapes completions",
    "reef": "priorities requests profiles shapes completions progress",
    "tally": "priorities profiles shapes completions",
    "xsched": "priorities completions",
    "fikit": "priorities requests profiles completions progress",
    "preemptive-priority": "priorities shapes completions progress",
    "earliest-start": "profiles completions dependencies",
    "critical-path": "profiles completions dependencies",
}


@pytest.mark.long
@pytest.mark.parametrize(("spec", "word"), [(spec, word) for spec, words in USED.items() for word in words.split()])
def test_what_is_declared_changes_decisions(spec: str, word: str) -> None:
    assert word in (reads_of(make_scheduler(spec)) or ())
    assert decisions(spec, (word,)) != decisions(spec)


def test_the_page_says_what_the_words_stand_for() -> None:
    lines = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("| `") and line.split("`")[1] in PARTS] == [
        f"| `{word}` | {part.meaning} |" for word, part in PARTS.items()
    ]


def test_agents_read_what_their_observation_shows() -> None:
    from gpusched_env.agents.model_scheduler import ModelScheduler

    shown = {
        source.strip() for features in TABLES.values() for feature in features for source in feature.source.split(",")
    }

    def is_shown(word: str) -> bool:
        tables = {"PendingColumn": "pending", "RunningColumn": "running", "TenantColumn": "tenants"}
        columns = PARTS[word].columns
        named = {f"{tables[type(c).__name__]}.{c.name.lower()}" for c in columns if type(c).__name__ in tables}
        return not shown.isdisjoint(named)

    words = tuple(word for word in PARTS if is_shown(word))
    assert reads_of(LearnedScheduler) == reads_of(ModelScheduler) == words


def test_a_word_that_there_is_not_is_refused() -> None:
    class Own:
        reads = ("profile",)

    with refused(InputError, "Own.reads", "'profile'", "did you mean 'profiles'"):
        reads_of(Own())
