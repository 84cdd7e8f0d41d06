"""Everything that a command or a function reads, with small files of each kind and what reads them.

``python -m tests.robustness.attacked --count 50 --seed 1 [NAME ...]`` mutates each ``count`` times, and prints what is
no single sentence of an :class:`~gpusched_env.errors.GpuschedError`, takes a minute, or two GiB.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import yaml
from typer.testing import CliRunner

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.manifest import check_agent
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training import check_training
from gpusched_env.agents.training.folder import check_kept, policy_file, read_config
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.errors import MOST_LETTERS, GpuschedError
from gpusched_env.experiments.calibrate.fit import read_recordings
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.live.result import Live, LiveEpisode, LiveFigures, encode_live
from gpusched_env.experiments.load_curve.curve import load_sweep
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.experiments.report.load import load_comparison
from gpusched_env.experiments.results.curves import curves_svg, encode_curves, gather, read_curves
from gpusched_env.experiments.submission.board import boards
from gpusched_env.experiments.submission.row import read_rows
from gpusched_env.games.child_launches.agents.rule import LaunchPolicyInfo
from gpusched_env.games.fleet.agents.cluster import order
from gpusched_env.games.fleet.agents.rule import FleetPolicyInfo
from gpusched_env.games.task_queues.agents.rule import FormPolicyInfo
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.workload import encode_workload
from tests.experiments import test_calibrate, test_carried, test_validate
from tests.experiments.trainings import training
from tests.games.fleet.cluster import test_importing, test_lifetimes
from tests.games.fleet.workload import test_traces
from tests.robustness.mutating import mutated
from tests.workload.execution_traces import launched, node, operator, operators, tensor
from tests.workload.kineto_traces import call, kernel, mark, memcpy, write
from tests.workload.nsys_exports import three_kernels

MOST_BYTES = 2 << 30
MOST_S = 60
REFUSED = "refused"


ROWS = Path(__file__).parents[2] / "docs" / "submissions" / "tiles"


class Attacked(NamedTuple):
    """A kind of input."""

    make: Callable[[Path], object]
    """Writes right files into an empty folder."""
    read: Callable[[Path], object]
    """Of that folder, whatever it holds."""


class Stuck(BaseException):
    """It takes too long."""


def command(*arguments: object) -> None:
    """Of the program, in this process; leaving it is fine."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code != 2, f"no such command: {done.output}"


# ---- scenarios, GPUs, workloads -------------------------------------------------------------------------


SCENARIOS = (
    "Toy",
    "KernelGraph",
    "ServingBurst",
    "ServingLanguageModel",
    "SharedMemory",
    "ServingFleetSlice",
    "InferenceBesideTraining",
)


def write_scenarios(folder: Path) -> None:
    for name in SCENARIOS:
        try:
            scenario = load_scenario(name)
        except GpuschedError:
            continue
        text = yaml.safe_dump(json.loads(msgspec.json.encode(scenario)), sort_keys=False)
        (folder / f"{name}.yaml").write_text(text)


def play(folder: Path) -> None:
    """A few decisions in every scenario that was changed or not, on both devices."""
    for file in sorted(folder.glob("*.yaml")):
        play_one(file)


def play_one(scenario: Any, steps: int = 20) -> None:
    for device in ("compiled", "reference"):
        env = GpuSchedulingEnv(scenario, device=device)
        _, info = env.reset(seed=0)
        for _ in range(steps):
            observation, reward, terminated, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
            assert all(np.isfinite(table).all() for table in observation.values()), "an observation is not finite"
            assert np.isfinite(reward), f"a reward is {reward}"
            assert np.isfinite(info["time_us"]), f"the time is {info['time_us']}"
            if terminated or truncated:
                break


def write_gpu(folder: Path) -> None:
    (folder / "gpu.yaml").write_text(yaml.safe_dump(json.loads(msgspec.json.encode(load_gpu("toy-4sm")))))


def play_on(folder: Path) -> None:
    play_one(load_scenario("Toy", gpu=str(folder / "gpu.yaml")))


def write_workload(folder: Path) -> None:
    (folder / "net.workload.json.gz").write_bytes(encode_workload(load_workload("toy_batch")))


def play_workload(folder: Path) -> None:
    workload = str(folder / "net.workload.json.gz")
    play_one(load_scenario("Toy", tenants={"batch": {"workload": workload}}))


# ---- recordings -----------------------------------------------------------------------------------------


def events(stream: int = 8) -> list[dict[str, Any]]:
    return [
        mark(0.0, 200.0),
        call("cudaLaunchKernel", 10.0, 5.0, 1),
        kernel(17.0, 10.0, 1),
        call("cudaMemcpyAsync", 20.0, 2.0, 2),
        memcpy("Memcpy HtoD (Pageable -> Device)", 30.0, 2.0, 2),
        call("cudaLaunchKernel", 40.0, 5.0, 3),
        kernel(47.0, 10.0, 3, "gemm", stream=stream),
        call("cudaDeviceSynchronize", 60.0, 100.0, 4),
        mark(300.0, 100.0, "ProfilerStep#4"),
        call("cudaLaunchKernel", 310.0, 5.0, 5),
        kernel(317.0, 10.0, 5),
        call("cudaDeviceSynchronize", 330.0, 60.0, 6),
    ]


def write_kineto(folder: Path) -> None:
    write(folder / "net.json", events())


def write_both(folder: Path) -> None:
    write(folder / "net.json", [operator(5, "aten::add"), *launched(1, 5)])
    operators(folder, node(5, "aten::add", [tensor(1, [8])], [tensor(2, [8])])).rename(folder / "execution.json")


def write_nsight(folder: Path) -> None:
    three_kernels(folder / "net.sqlite").close()


def write_kernel_file(folder: Path) -> None:
    rows = ("Name,Profile,Memory_footprint,SM_usage,Duration", "Conv,1,0,49,26688", "BatchNorm,0,0,32,23328")
    (folder / "net.csv").write_text("\n".join((*rows, "void add,-1,0,196,2687")))


def import_to(folder: Path, *options: object) -> None:
    (source,) = folder.glob("net.*")
    command("import", "trace", source, "--out", folder / "made.workload.json.gz", *options)


def write_steps(folder: Path) -> None:
    for step in ("decode_b1_c128", "prefill_p64"):
        trace = write(folder / "plain.json", events(stream=7))
        (folder / f"net_{step}.kineto.json.gz").write_bytes(gzip.compress(trace.read_bytes()))
        trace.unlink()


def write_networks(folder: Path) -> None:
    for name, gpu in (("a", "h100-sxm"), ("b", "h200-sxm")):
        (folder / name).mkdir()
        (folder / name / "net.workload.json").write_bytes(msgspec.json.encode(test_carried.recorded(gpu, 10.0, 4.0)))


def write_samples(folder: Path) -> None:
    kernels = [msgspec.to_builtins(sample.kernel) for sample in test_calibrate.closed_form_samples()[::6]]
    test_calibrate.write(folder, kernels=kernels)


def write_pairs(folder: Path) -> None:
    rows = {"kernels": [test_validate.kernel("k0"), test_validate.kernel("k1")], "pairs": [test_validate.APART]}
    for name, found in rows.items():
        lines = "".join(json.dumps(row) + "\n" for row in [{"gpu": "a header"}, *found])
        (folder / f"{name}.jsonl").write_text(lines)


def validate(folder: Path) -> None:
    made = ("--json", folder / "v.json", "--out", folder / "made")
    command("lab", "validate", folder, "--gpu", "h100-sxm", "--workers", 1, *made)


# ---- results --------------------------------------------------------------------------------------------


def write_ranking(folder: Path) -> None:
    rank("Toy", ["sjf", "fifo", "sjf-clairvoyant"], 2, path=folder / "ranking.json", workers=1)


def rank_commands(folder: Path) -> None:
    file = folder / "ranking.json"
    command("lab", "page", "rankings", file, "--docs", folder / "page.md")
    command("lab", "page", "headroom", file, "--docs", folder / "headroom.md")
    command("lab", "replay", file, "--workers", 1)


def write_rows(folder: Path) -> None:
    for name in ("pass-through", "stream-k"):
        shutil.copy(ROWS / f"{name}.json", folder)


def rows(folder: Path) -> None:
    for board in boards(read_rows(folder).values()):
        board.table({row.name: "" for row in board.rows})


def write_comparison(folder: Path) -> None:
    compare("Toy", "fifo,sjf", 2, device="reference", record="kernels", workers=1).save(folder / "saved")


def report(folder: Path) -> None:
    found = load_comparison(folder / "saved")
    found.to_frame()
    found.save(folder / "again")


def write_sweep(folder: Path) -> None:
    arguments = ("--schedulers", "fifo", "--seeds", 2, "--workers", 1)
    command("compare", "Toy", *arguments, "--sweep", "load=1,2", "--out", folder / "saved")


def sweep(folder: Path) -> None:
    load_sweep(folder / "saved").to_frame()


def write_curves(folder: Path) -> None:
    folders = [training(folder / name, [5.0, 1.2, 1.1], seed=seed) for seed, name in enumerate(("a", "b"))]
    (folder / "curves.json").write_bytes(encode_curves(gather(folders)))
    for made in folders:
        shutil.rmtree(made)


def curves(folder: Path) -> None:
    found = read_curves(folder / "curves.json")
    found.means()
    curves_svg(found)


def write_live(folder: Path) -> None:
    figures = LiveFigures(
        turnaround_us=(100.0, 10.0), slowdown=(1.0, 1.0), throughput_per_s=(1.0, 1.0), urgent_p99=None,
        best_effort=None, makespan_us=1.0, cost=3.0, done=True,
    )  # fmt: skip
    episodes = [
        LiveEpisode("Toy", name, seed, 5, 10.0, 20.0, figures, figures)
        for name in ("edf", "orion", "reef") for seed in (0, 1)
    ]  # fmt: skip
    tenants = {"Toy": ["urgent", "batch"]}
    live = Live(command="", versions={}, product="H", gpu="h", seeds=[0, 1], episodes=episodes, tenants=tenants)
    (folder / "live.json").write_bytes(encode_live(live))


def write_trainings(folder: Path) -> None:
    for seed, name in enumerate(("a", "b")):
        made = training(folder / name, [5.0, 1.2, 1.1], seed=seed)
        shutil.copy(FOLDER / "PriorityFill.npz", made / "best.npz")


def train_commands(folder: Path) -> None:
    command("lab", "curves", folder / "a", folder / "b", "--json", folder / "curves.json")
    check_training(read_config(folder / "a" / "config.yaml"), folder / "a", resume=True)
    check_kept(folder / "a")
    ExportedPolicy.load(policy_file(folder / "a"))


# ---- policies -------------------------------------------------------------------------------------------


def write_policies(folder: Path) -> None:
    for name in ("PriorityFill", "KernelGraph", "DynamicParallelism", "Fleet", "TaskQueue"):
        shutil.copy(FOLDER / f"{name}.npz", folder / f"{name}.npz")
    shutil.copy(FOLDER / "PriorityFill.json", folder / "PriorityFill.json")


READS: dict[str, Callable[[Path], object]] = {
    "DynamicParallelism": LaunchPolicyInfo.read, "Fleet": FleetPolicyInfo.read, "TaskQueue": FormPolicyInfo.read,
}  # fmt: skip


def policies(folder: Path) -> None:
    for file in sorted(folder.glob("*.npz")):
        READS.get(file.stem, ExportedPolicy.load)(file)
    check_agent(folder, "PriorityFill")


def fitted(folder: Path) -> object:
    """It loads SciPy."""
    from gpusched_env.experiments.calibrate.fit import fit

    return fit(read_recordings(folder).samples, load_gpu("h100-sxm"), simulate=False)


# ---- fleets ---------------------------------------------------------------------------------------------


SMALL = ("fleet", "--days", 0.02, "--gpus", 4, "--dispatchers", "first-fit")


def write_pai(folder: Path) -> None:
    (folder / "instances.csv").write_text(test_traces.INSTANCE_ROWS)
    (folder / "sensors.csv").write_text(test_traces.SENSOR_ROWS)


def write_philly(folder: Path) -> None:
    (folder / "log.json").write_text(json.dumps(test_traces.philly()))


def write_cluster(folder: Path) -> None:
    (folder / "nodes.csv").write_text(test_importing.NODE_ROWS)
    (folder / "pods.csv").write_text(test_importing.POD_ROWS.replace("|T4", ""))


def place(folder: Path) -> None:
    files = ("--nodes", folder / "nodes.csv", "--pods", folder / "pods.csv")
    command("lab", "cluster", *files, "--policies", "fgd", "--seeds", 1)


def write_recording(folder: Path) -> None:
    (folder / "nodes.csv").write_text(test_importing.NODE_ROWS)
    (folder / "pods.csv").write_text(test_lifetimes.TABLE)


def write_order(folder: Path) -> None:
    write_recording(folder)
    shutil.copy(order.SHIPPED, folder / "order.json")


def queue(folder: Path) -> None:
    files = ("--nodes", folder / "nodes.csv", "--recording", folder / "pods.csv")
    rule = folder / "order.json"
    own = ("--policies", "learned", "--order", rule) if rule.exists() else ("--policies", "fgd")
    command("lab", "cluster-queue", *files, *own, "--loads", "0.5", "--hours", 1)


ATTACKED: dict[str, Attacked] = {
    "scenario": Attacked(write_scenarios, play),
    "gpu": Attacked(write_gpu, play_on),
    "workload": Attacked(write_workload, play_workload),
    "kineto": Attacked(write_kineto, import_to),
    "execution-trace": Attacked(
        write_both, lambda folder: import_to(folder, "--execution-trace", folder / "execution.json")
    ),
    "nsight": Attacked(write_nsight, import_to),
    "kernel-file": Attacked(
        write_kernel_file,
        lambda folder: command(
            "import", "kernels", folder / "net.csv", "--gpu", "v100-sxm", "--out", folder / "made.workload.json.gz"
        ),
    ),
    "steps": Attacked(
        write_steps, lambda folder: command("import", "steps", folder, "--name", "n", "--out", folder / "made.json.gz")
    ),
    "carry-over": Attacked(write_networks, lambda folder: command("lab", "carry-over", folder / "a", folder / "b")),
    "validate": Attacked(write_pairs, validate),
    "calibrate": Attacked(
        write_samples,
        fitted,
    ),
    "ranking": Attacked(write_ranking, rank_commands),
    "rows": Attacked(write_rows, rows),
    "comparison": Attacked(write_comparison, report),
    "sweep": Attacked(write_sweep, sweep),
    "curves": Attacked(write_curves, curves),
    "live": Attacked(
        write_live, lambda folder: command("lab", "page", "live", folder / "live.json", "--docs", folder / "p.md")
    ),
    "training": Attacked(write_trainings, train_commands),
    "policies": Attacked(write_policies, policies),
    "pai": Attacked(
        write_pai, lambda folder: command(*SMALL, "--pai", folder / "instances.csv", folder / "sensors.csv")
    ),
    "cluster": Attacked(write_cluster, place),
    "recording": Attacked(write_recording, queue),
    "order": Attacked(write_order, queue),
    "philly": Attacked(write_philly, lambda folder: command(*SMALL, "--philly", folder / "log.json")),
}  # fmt: skip


@functools.cache
def right_files(name: str) -> Path:
    """A folder with the files of a kind as they should be."""
    folder = Path(tempfile.mkdtemp(prefix=f"attacked-{name}-"))
    ATTACKED[name].make(folder)
    return folder


def unchanged(name: str) -> str:
    """What is wrong with the answer to files as they should be, as :func:`answer` says."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(right_files(name), place, dirs_exist_ok=True)
        return answer(lambda: ATTACKED[name].read(Path(place)))


def attack(name: str, seed: int) -> str:
    """What is wrong with the answer to the mutation of a number, as :func:`answer` says."""
    dice = random.Random(f"{name} {seed}")
    right = right_files(name)
    file = dice.choice(sorted(path.relative_to(right) for path in right.rglob("*") if path.is_file()))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(right, folder, dirs_exist_ok=True)
        if name == "scenario":
            for other in folder.glob("*.yaml"):
                if other.name != file.name:
                    other.unlink()
        (folder / file).write_bytes(mutated(file.name, (right / file).read_bytes(), dice))
        return answer(lambda: ATTACKED[name].read(folder))


def answer(read: Callable[[], object]) -> str:
    """What is wrong with how ``read`` ends; empty: it ends well; :data:`REFUSED`: with one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            read()
    except GpuschedError as error:
        text = str(error)
        return (
            REFUSED if text and "\n" not in text and len(text) < MOST_LETTERS + 10 else f"no sentence: {text[:300]!r}"
        )
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-6:]
        frames = "\n    ".join(f"{frame.filename}:{frame.lineno} {frame.line}" for frame in where)
        return f"{type(error).__name__}: {str(error)[:200]}\n    {frames}"
    return ""


def most_bytes() -> int:
    """Of memory that this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Print what is wrong, with the numbers that show it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(ATTACKED))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()

    def stuck(*_: object) -> None:
        raise Stuck

    signal.signal(signal.SIGALRM, stuck)
    wrong = refused = 0
    for name in asked.names:
        if found := unchanged(name):
            print(f"{name}: the right files: {found}", flush=True)
        for seed in range(asked.seed, asked.seed + asked.count):
            before = most_bytes()
            signal.alarm(MOST_S)
            found = attack(name, seed)
            signal.alarm(0)
            refused += found == REFUSED
            found = found.removeprefix(REFUSED)
            grown = most_bytes()
            if grown > max(before, MOST_BYTES):
                found += f" {grown >> 20} MiB of memory"
            if found:
                wrong += 1
                print(f"{name} {seed}: {found}", flush=True)
        print(f"{name}: {refused} refused so far, {most_bytes() >> 20} MiB", flush=True)
    print(f"{asked.count} mutations each of {len(asked.names)} kinds: {refused} refused, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
