"""The page of results: summary, tables, learning curves, where the shipped agents come from, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpusched_env.agents.manifest import Manifest
from gpusched_env.display.table import NONE, Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.names import LEARNED
from gpusched_env.experiments.lib.statistics import Interval
from gpusched_env.experiments.ranking.page import (
    BOUND,
    COST,
    DIFFERENCE,
    EXPLANATION,
    PROBABILITY,
    episodes_of,
    repeat,
    table,
    workloads_of,
)
from gpusched_env.experiments.ranking.result import Ranking
from gpusched_env.experiments.results.curves import Curves
from gpusched_env.experiments.results.figure import curves_svg
from gpusched_env.experiments.results.summary import Summary, grouped, summaries

INTRODUCTION = """\
Trained agents beside hand-written schedulers. Written by `gpusched results` from result files: costs of every episode
(`gpusched rank`), learning curves (`gpusched curves`) and what is noted with the shipped agents (`gpusched ship`).
Trainings and their validations take seeds from 10,000,000 on, and no held-out workloads.
"""
SUMMARY = """\
*Difference*: of the mean costs, relative, on the same episodes. *Probability of improvement*: that the agent costs less
than the best hand-written scheduler on an episode. *Verdict*: better or worse where the 95 % interval of the
difference is below or above 0. Brackets are 95 % intervals.
"""
CURVES = """\
Mean cost of the validation episodes, which come from the training workloads on seeds of their own. Thin lines are
trainings with different seeds; the band is a 95 % interval (bootstrap) of their mean. Orange lines are the best
hand-written schedulers on the same episodes. Costs of the first validations may lie above the frame.
"""


def page(
    rankings: Mapping[str, Ranking],
    curves: Mapping[str, Curves],
    manifests: Sequence[Manifest],
    docs: Path,
) -> tuple[str, dict[str, bytes]]:
    """The page, and the pictures that belong beside it.

    Args:
        rankings, curves: by the names of their files, as the command is told them.
        manifests: of the shipped agents.
        docs: where the page will be.

    Returns:
        its Markdown, and by file name the pictures.

    Raises:
        InputError: no file has a trained agent; a file lacks episodes, is of another agent than the shipped one, or
            lacks the best hand-written scheduler.
    """
    check_policies(rankings, manifests)
    found = summaries(list(rankings.values()))
    if not found:
        raise InputError(
            f"{', '.join(rankings)}: no trained agent beside a hand-written scheduler; gpusched rank --schedulers "
            f"{LEARNED},... ranks one"
        )
    pictures = {_picture(docs, curves, file): curves_svg(drawn) for file, drawn in curves.items()}
    lines = ["# Results", "", INTRODUCTION]
    lines += ["## Summary", "", SUMMARY, summary_table(found).markdown()]
    lines += ["## All schedulers", "", EXPLANATION, *_tables(list(rankings.values()))]
    if curves:
        lines += ["## Learning curves", "", CURVES]
        lines += [line for file, drawn in curves.items() for line in _curves(drawn, _picture(docs, curves, file))]
    if manifests:
        lines += ["## Shipped agents", "", *(line for manifest in manifests for line in _provenance(manifest))]
    lines += ["## How to repeat it", "", "```sh", *_commands(rankings, curves, docs), "```"]
    return "\n".join(lines).rstrip() + "\n", pictures


def check_policies(rankings: Mapping[str, Ranking], manifests: Sequence[Manifest]) -> None:
    """Refuse rankings of agents that were shipped once.

    Raises:
        InputError: names the file and the scenario.
    """
    for file, ranking in rankings.items():
        for manifest in manifests:
            ranked = ranking.policies.get(manifest.scenario, {}).get(LEARNED)
            if ranked not in (None, manifest.sha256):
                raise InputError(
                    f"{file}: ranks another agent for {manifest.scenario} (SHA-256 {ranked[:12]}...) than the one that "
                    f"is shipped ({manifest.sha256[:12]}...); gpusched rank --resume renews its episodes"
                )


def summary_table(found: Sequence[Summary]) -> Table:
    """One row for each agent, scenario and set of workloads."""
    rows = [
        (
            row.scenario,
            workloads_of(row.ranking).replace(" workloads", ""),
            _episodes(row),
            f"{row.agent.scheduler} {row.agent.mean.text(COST)}",
            f"{row.best.scheduler} {row.best.mean.text(COST)}",
            row.bound.mean.text(COST) if row.bound is not None else NONE,
            row.agent.against.text(DIFFERENCE),
            row.agent.improvement.text(PROBABILITY),
            row.verdict,
        )
        for row in found
    ]
    heads = ("scenario", "workloads", "episodes", "agent", "best hand-written", BOUND)
    return Table("Summary", (*heads, "difference", "probability of improvement", "verdict"), rows)


def _episodes(row: Summary) -> str:
    seeds, variants = len(row.ranking.seeds), len(row.ranking.variants[row.scenario])
    return f"{seeds} seeds" if variants == 1 else f"{seeds} seeds × {variants}"


def _tables(rankings: Sequence[Ranking]) -> list[str]:
    lines: list[str] = []
    for scenario, groups in grouped(rankings).items():
        lines += [f"### {scenario}", ""]
        for workloads, group in groups.items():
            for ranking in group:
                about = f"{workloads[0].upper()}{workloads[1:]}: {episodes_of(ranking, scenario)}"
                lines += [about, "", table(ranking, scenario).markdown()]
    return lines


def _picture(docs: Path, curves: Mapping[str, Curves], file: str) -> str:
    """The name of a picture; numbered where a scenario has several."""
    scenario = curves[file].scenario
    same = [other for other in curves if curves[other].scenario == scenario]
    number = "" if same[0] == file else f"-{same.index(file) + 1}"
    return f"{docs.stem}-{scenario}{number}.svg"


def _curves(curves: Curves, picture: str) -> list[str]:
    best = curves.best_baselines(1)
    finals, bests = curves.means()[-1], [curve.best for curve in curves.curves]
    count = len(curves.curves)
    text = (
        f"{_described(curves)}, {count} seeds ({', '.join(str(curve.seed) for curve in curves.curves)}); "
        f"{curves.episodes} validation episodes. Last validation: {_mean(finals)}. "
        f"Best of each seed: {', '.join(COST.format(cost) for cost in bests)}."
    )
    if best:
        name, cost = best[0]
        below = sum(own < cost for own in bests)
        text += f" Best hand-written scheduler: {name}, {COST.format(cost)}; {below} of {count} seeds got below it."
    return [f"### {curves.scenario}: learning", "", f"![Learning curves of {curves.scenario}]({picture})", "", text, ""]


def _described(curves: Curves) -> str:
    """The training in a few words."""
    training = curves.training
    imitation = training.get("imitation")
    after = f" after an imitation of {imitation['scheduler']}" if imitation else ""
    return f"{training['algo']} with policy {training['policy']}{after}, {curves.timesteps[-1]:,} decisions"


def _mean(interval: Interval) -> str:
    return f"mean {interval.text(COST)}"


def _provenance(manifest: Manifest) -> list[str]:
    validation = manifest.validation
    against = min(validation.baselines.items(), key=lambda item: item[1], default=None)
    text = f"Validation ({validation.episodes} episodes, after {validation.timesteps:,} decisions): cost "
    text += COST.format(validation.cost)
    text += f"; {against[0]}, the best hand-written scheduler, {COST.format(against[1])}." if against else "."
    lines = [f"### {manifest.scenario}: agent", "", text, f"SHA-256 of `{manifest.scenario}.npz`: `{manifest.sha256}`."]
    for step in manifest.trainings:
        packages = ", ".join(f"{name} {version}" for name, version in step.versions.items())
        lines += ["", f"Seed {step.seed}, {step.timesteps:,} decisions, with {packages}:", ""]
        lines += ["```sh", step.command, "```"]
    return [*lines, ""]


def _commands(rankings: Mapping[str, Ranking], curves: Mapping[str, Curves], docs: Path) -> list[str]:
    lines = [repeat(ranking, file) for file, ranking in rankings.items()]
    for file, found in curves.items():
        folders = [_folder(curve.command, found.scenario) for curve in found.curves]
        lines += [curve.command for curve in found.curves]
        lines.append(shlex.join(["gpusched", "curves", *folders, "--json", file]))
    given = [part for file in curves for part in ("--curves", file)]
    return [*lines, shlex.join(["gpusched", "results", *rankings, *given, "--docs", str(docs)])]


def _folder(command: str, scenario: str) -> str:
    """Where a training was written, as its command says."""
    parts = shlex.split(command.replace("--out=", "--out "))
    return parts[parts.index("--out") + 1] if "--out" in parts[:-1] else f"results/train/{scenario}"
