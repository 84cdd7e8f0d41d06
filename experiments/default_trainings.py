"""What ``gpusched train`` comes to with its defaults, on every registered environment: a file of results, and its page.

    python -m gpusched_env.experiments.default_trainings runs/defaults --limit 3600 --jobs 16

Trains each as a process of its own, as many at a time as there are ``--jobs``, until all are complete or the limit (in
seconds) is over; the same command again goes on. ``summary.json`` there holds what has been found so far.
``--results PATH`` writes it elsewhere, ``--page PATH`` the page that is made of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from gpusched_env.agents.files import replacing
from gpusched_env.agents.training.config import defaults_for
from gpusched_env.agents.training.folder import RESULT, VALIDATION, LearningCurve, made_by
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.lib.files import as_stored
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.ranking.made import Fingerprints, check_together
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.scenarios.games import GAMES, KERNELS, rooms_of
from gpusched_env.scenarios.scenario import scenario_names

SUMMARY = "summary.json"
GRACE_S = 10.0
"""Time that a training has to end once it is told to stop."""


class DefaultTraining(msgspec.Struct, frozen=True, kw_only=True):
    """The training of one environment."""

    name: str
    algorithm: str
    reference: str
    """Scheduler that stands for the plain GPU."""
    cost: float
    """Mean of the reference over the validation episodes."""
    best: float
    """Mean of the best policy so far over the validation episodes."""
    best_after: int
    """Decisions of the training up to its best policy."""
    decisions: int
    complete: bool
    """Whether the training has ended by itself, not by the limit."""
    made: Fingerprints = Fingerprints()
    """Hashes of what made the training."""

    @property
    def change(self) -> float:
        """Relative, of the cost; below 0 the agent is better."""
        return self.best / self.cost - 1.0


def found_in(folder: Path, name: str) -> DefaultTraining | None:
    """What the training in ``folder`` has come to; ``None``: it has not been validated yet."""
    path = folder / VALIDATION
    if not path.exists():
        return None
    curve = decoded(read_bytes(path), LearningCurve, f"{path}: not the learning curve of a training")
    game = game_of(name)
    if not curve.validations or game.plain_gpu not in curve.baselines:
        return None
    best = min(curve.validations, key=lambda validation: validation.cost)
    return DefaultTraining(
        name=name,
        algorithm=defaults_for(name).get("algo", game.algorithm),
        reference=game.plain_gpu,
        cost=curve.baselines[game.plain_gpu],
        best=best.cost,
        best_after=best.timesteps,
        decisions=curve.validations[-1].timesteps,
        complete=(folder / RESULT).is_file(),
        made=msgspec.convert(made_by(folder), Fingerprints),
    )


def trained(out: Path, names: list[str]) -> list[DefaultTraining]:
    """What is known of these environments, in their order."""
    return [found for name in names if (found := found_in(out / name, name)) is not None]


def start(name: str, out: Path) -> subprocess.Popen[bytes]:
    """Begin the training of an environment, or go on with it, in a process group of its own."""
    arguments = ["train", name, "--out", str(out / name), "--baselines", game_of(name).plain_gpu, "--resume"]
    with (out / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "gpusched_env.experiments.cli", *arguments],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Interrupt trainings, and end those that do not stop by themselves."""
    for process in processes:
        os.killpg(process.pid, signal.SIGINT)
    until = time.monotonic() + GRACE_S
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def train_all(out: Path, names: list[str], limit_s: float, jobs: int) -> None:
    """Train what is not complete; ``summary.json`` is written whenever a training ends, and every ten seconds."""
    out.mkdir(parents=True, exist_ok=True)
    waiting = [name for name in names if not (out / name / RESULT).is_file()]
    running: dict[str, subprocess.Popen[bytes]] = {}
    began = time.monotonic()
    while (waiting or running) and time.monotonic() < began + limit_s:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            running[name] = start(name, out)
        time.sleep(min(10.0, limit_s / 10.0))
        for name in [name for name, process in running.items() if process.poll() is not None]:
            code = running.pop(name).returncode
            print(f"{time.monotonic() - began:6.0f} s: {name} ended with {code}", flush=True)
        write(trained(out, names), out / SUMMARY)
    stop([process for process in running.values() if process.poll() is None])
    write(trained(out, names), out / SUMMARY)


def write(found: list[DefaultTraining], path: Path) -> None:
    """Write a file of results, whole or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(as_stored(path, msgspec.json.format(msgspec.json.encode(found)) + b"\n"))


def main(
    out: Annotated[Path, typer.Argument(help="Folder of the trainings.")],
    limit: Annotated[float, typer.Option(help="Seconds; 0: train nothing.")] = 3600.0,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time.")] = 1,
    only: Annotated[str, typer.Option(help="Names of scenarios, separated by commas.")] = "",
    results: Annotated[Path | None, typer.Option(help="Write the results here.")] = None,
    page_to: Annotated[Path | None, typer.Option("--page", help="Write the page here.")] = None,
) -> None:
    """Train every registered environment with defaults."""
    # Drawn scenarios have no training of their own.
    own = (name for name in GAMES if rooms_of(name).trainer != KERNELS.trainer)
    names = only.split(",") if only else [*scenario_names(), *own]
    train_all(out, names, limit, jobs)
    found = trained(out, names)
    for one in found:
        print(f"{one.name}: {one.best:.4g}, {one.reference} {one.cost:.4g} ({one.change:+z.1%})")
    if results is not None:
        write(found, results)
    check_together({str(out / one.name): one.made for one in found})
    if page_to is not None:
        page_to.write_text(page("default-trainings.md.j2", trainings=found), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
