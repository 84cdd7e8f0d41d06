"""Tasks that share a GPU, without one: what rows are recorded, what counts, and the launchers on the CPU."""

from __future__ import annotations

import copy
import ctypes
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gpusched_env.errors import GpuError, InputError
from gpusched_env.experiments.record import board, networks
from gpusched_env.experiments.record import tasks as compiled_task
from gpusched_env.experiments.record.board import NvmlBoard, board_of, metered
from gpusched_env.experiments.record.networks import NetworkBuilder, network
from gpusched_env.experiments.record.processes import MODES, PAIRS
from gpusched_env.experiments.record.run import RecordingPlan, record
from gpusched_env.experiments.record.sharing import (
    HOSTS_ONLY,
    LAUNCHERS,
    RECORDED,
    TRAININGS,
    URGENT,
    WARM_UP,
    AloneRun,
    SharedRows,
    Spans,
    Task,
    figures,
)
from gpusched_env.experiments.record.sharing_gpu import BackgroundThread, OtherProcess, TorchSharing
from gpusched_env.experiments.record.steps import training_step
from gpusched_env.experiments.record.tasks import TRACED_PIXELS, CompiledTask, EagerTask, Tasks
from tests.refusals import refused

BOARD = {"power_w": 500.0}
WHATS = {"alone", "streams", "priority streams", "hosts only", "lock only", "time slicing"}


def spans(*pairs: tuple[float, float]) -> Spans:
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


class FakeShared:
    """Requests from 1 s to 4 s, beside steps of which one begins before them and one ends after them."""

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.head: dict[str, Any] = {"gpu": "fake", "unit": "us"}
        self.broken, self.calls, self.cleared = broken, list[tuple[Any, ...]](), 0

    def _asked(self, how: str, *of: Any) -> None:
        self.calls.append((how, *of))
        if how in self.broken:
            raise GpuError(f"{how} is broken")

    def alone(self, task: Task) -> AloneRun:
        self._asked("alone", task)
        return AloneRun(spans((0.0, 0.25), (0.25, 1.0)), 12_000, BOARD)

    def threads(self, front: Task, behind: Task, priority: int) -> SharedRows:
        self._asked("threads", front, behind, priority)
        behind_s = spans((0.5, 1.5), (1.5, 2.0), (2.0, 3.5), (3.5, 4.5))
        return SharedRows(spans((1.0, 2.0), (2.0, 4.0)), behind_s, BOARD)

    def processes(self, front: Task, behind: Task) -> SharedRows:
        self._asked("processes", front, behind)
        return SharedRows(spans((1.0, 2.0), (2.0, 4.0)), spans((0.5, 1.5), (3.5, 4.5)), BOARD)

    def locked(self, front: Task) -> Spans:
        self._asked("locked", front)
        return spans((0.0, 0.001))

    def clear(self) -> None:
        self.cleared += 1


def recorded(folder: Path, gpu: FakeShared, name: str = "sharing", **plan: Any) -> list[dict[str, Any]]:
    record(RecordingPlan(folder=folder, sets=(name,), **plan), lambda *_: None, shared=lambda: gpu)
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_every_network_is_recorded_in_every_mode_with_both_launchers(tmp_path: Path) -> None:
    gpu = FakeShared()
    head, *rows = recorded(tmp_path, gpu)
    assert head == {"gpu": "fake", "unit": "us"}
    found = Counter((row["inference"], row["form"], row["what"]) for row in rows)
    wanted = {(name, form, what) for name in TRAININGS for form in LAUNCHERS for what in WHATS}
    assert found == dict.fromkeys(wanted, 1)
    behind = {(row["what"], row["training"], row["batch"]) for row in rows if row["inference"] == "densenet201"}
    assert behind == {
        *((what, "densenet201", 64) for what in WHATS - {"hosts only", "lock only"}),
        ("hosts only", "resnet50", 2),
        ("lock only", None, None),
    }


def test_tasks_have_the_streams_batches_and_images_that_rows_say(tmp_path: Path) -> None:
    gpu = FakeShared()
    recorded(tmp_path, gpu, quick=True)
    request, step = Task("vgg19", False, 1, 224, "eager"), Task("vgg19", True, 128, 224, "eager")
    small = Task(HOSTS_ONLY[0], True, 2, 32, "eager")
    assert [call for call in gpu.calls if call[1].launcher == "eager"] == [
        ("alone", request),
        ("alone", step),
        ("threads", request, step, 0),
        ("threads", request, step, URGENT),
        ("alone", small),
        ("threads", request, small, URGENT),
        ("locked", request),
        ("processes", request, step),
    ]


def test_steps_count_that_began_and_ended_while_there_were_requests(tmp_path: Path) -> None:
    rows = {row["what"]: row for row in recorded(tmp_path, FakeShared(), quick=True)[1:]}
    assert rows["streams"]["training_us"] == {
        "n": 2,
        "mean_us": 1e6,
        "median_us": 1e6,
        "std_us": 5e5,
        "p99_us": 1.49e6,
    }
    assert rows["time slicing"]["training_us"] == {
        "n": 0,
        "mean_us": None,
        "median_us": None,
        "std_us": None,
        "p99_us": None,
    }
    assert rows["alone"]["memory_bytes"] == 12_000
    assert rows["hosts only"]["alone_training_us"]["mean_us"] == 5e5


def test_programs_of_pairs_are_recorded_alone_on_streams_and_in_processes(tmp_path: Path) -> None:
    gpu = FakeShared()
    head, *rows = recorded(tmp_path, gpu, "processes")
    assert head == {"gpu": "fake", "unit": "us"}
    names = {name for pair in PAIRS for name in pair}
    alone = [row for row in rows if row["what"] == "alone"]
    assert {row["front"] for row in alone} == names
    assert len(alone) == len(names)
    together = [(row["what"], row["front"], row["behind"]) for row in rows if row["what"] != "alone"]
    assert Counter(together) == {(mode, *pair): 1 for mode in MODES for pair in PAIRS}
    # Processes last: until then all programs stay in this one.
    assert [what for what, *_ in together[-len(PAIRS) :]] == ["time slicing"] * len(PAIRS)
    assert {row["board"]["power_w"] for row in rows} == {500.0}
    front, behind = (Task(name, False, launcher=RECORDED) for name in PAIRS[0])
    assert {("threads", front, behind, 0), ("threads", front, behind, URGENT), ("processes", front, behind)} <= {
        call for call in gpu.calls if len(call) > 2
    }
    assert {row["behind_us"]["n"] for row in rows if row["what"] == "streams"} == {2}


def test_a_pair_that_fails_is_a_row_and_is_tried_again(tmp_path: Path) -> None:
    broken = recorded(tmp_path, FakeShared(broken=("processes",)), "processes", quick=True)[1:]
    assert [(row["what"], row["error"]) for row in broken if "error" in row] == [
        ("time slicing", "GpuError: processes is broken")
    ]
    gpu = FakeShared()
    rows = recorded(tmp_path, gpu, "processes", quick=True, resume=True)[1:]
    assert [how for how, *_ in gpu.calls] == ["processes"]
    assert "error" not in rows[-1]


def test_a_recorded_program_is_the_one_that_traces_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    built = NetworkBuilder((), lambda: lambda: steps.append("step"))
    monkeypatch.setattr(compiled_task, "program_of", {"resnet50_infer_b1": built}.__getitem__)
    task = Tasks("cpu", small).ready(Task("resnet50_infer_b1", False, launcher=RECORDED))
    assert steps == ["step"] * WARM_UP[False]
    task.free()


def test_a_network_can_wait_in_mid_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    waited: list[str] = []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=lambda: waited.append("")))
    monkeypatch.setattr(networks, "_in_torchvision", lambda name: name == "deep")
    models = SimpleNamespace(get_model=lambda *_, **__: torch.nn.Sequential(*(torch.nn.ReLU() for _ in range(9))))
    real = networks.import_module
    monkeypatch.setattr(
        networks, "import_module", lambda name: SimpleNamespace(models=models) if name == "torchvision" else real(name)
    )
    monkeypatch.setattr(networks, "_inference", lambda model, given: lambda: model(given))
    monkeypatch.setattr(networks, "_images", lambda batch, pixels: torch.zeros(batch))
    network("deep_waits4_infer_b1").build()()
    assert len(waited) == 4
    with refused(InputError, "deep_waits4_train_b1"):
        network("deep_waits4_train_b1")


class FakeBoard:
    """Uses 300 W; its clock falls."""

    def __init__(self) -> None:
        self.begun_s, self.looks = time.perf_counter(), 0

    def energy_j(self) -> float:
        return 300.0 * (time.perf_counter() - self.begun_s)

    def clock_mhz(self, clock: int = 1) -> int:
        self.looks += 1
        return 2619 if clock == 2 else max(1500, 2000 - self.looks)


def test_energy_and_clocks_are_of_the_time_meanwhile() -> None:
    result, told = metered(cast(NvmlBoard, FakeBoard()), lambda: time.sleep(0.05) or "done")
    assert result == "done"
    assert told["power_w"] == pytest.approx(300.0, rel=0.02)
    assert told["sm_clock_mhz"] == sorted(told["sm_clock_mhz"])
    assert (told["memory_clock_mhz"], told["seconds"] >= 0.05) == (2619, True)
    assert metered(None, lambda: 3) == (3, {})


def test_without_nvml_there_is_no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "LIBRARY", "libnowhere.so")
    assert board_of(SimpleNamespace(uuid="0")) is None


def test_figures_of_iterations_by_hand() -> None:
    assert figures(spans((1.0, 1.001), (1.002, 1.004), (1.004, 1.010))) == {
        "n": 3,
        "mean_us": 3000.0,
        "median_us": 2000.0,
        "std_us": 2160.2,
        "p99_us": 5920.0,
    }


def test_what_fails_is_a_row_and_is_tried_again(tmp_path: Path) -> None:
    gpu = FakeShared(broken=("processes",))
    rows = recorded(tmp_path, gpu, quick=True)[1:]
    failed = [row for row in rows if "error" in row]
    assert [(row["what"], row["form"]) for row in failed] == [("time slicing", form) for form in LAUNCHERS]
    assert {row["error"] for row in failed} == {"GpuError: processes is broken"}
    assert len(rows) == 2 * len(WHATS)
    # Once after each failure, once at the end.
    assert gpu.cleared == 3

    again = FakeShared()
    more = recorded(tmp_path, again, quick=True, resume=True)[1:]
    assert [call[0] for call in again.calls] == ["processes", "processes"]
    assert more[: len(rows)] == rows
    assert all("inference_us" in row for row in more[len(rows) :])


def test_it_is_recorded_where_it_is_asked_for() -> None:
    assert "sharing" not in RecordingPlan(folder=Path()).sets
    with refused(InputError, "'sharin'", "did you mean 'sharing'"):
        RecordingPlan(folder=Path(), sets=("sharin",))


def test_networks_in_single_precision_and_trainings_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules,
        "torchvision",
        SimpleNamespace(models=SimpleNamespace(segmentation=None, list_models=lambda module: ["vgg19"])),
    )
    builders = {
        "fp32_infer_b1": "_single",
        "fp32_train_b128": "_single",
        "train_b8": "_training",
        "infer_b4": "_vision",
    }
    for name, builder in builders.items():
        found = network(f"vgg19_{name}")
        assert found.packages == ("torchvision",)
        assert found.build.__qualname__.split(".")[0] == builder
    for name in ("vgg19_fp16_infer_b1", "vgg21_fp32_infer_b1", "vgg19_fp32_infer_b0"):
        with refused(InputError, name, "network"):
            network(name)


def small(name: str) -> Any:
    """A network that the CPU is done with in no time."""
    import torch

    if name == "none":
        raise RuntimeError("no such network")
    layers = (
        torch.nn.Conv2d(3, 4, 3, bias=False),
        torch.nn.BatchNorm2d(4),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
    )
    return torch.nn.Sequential(*layers, torch.nn.Linear(4, 1000))


@pytest.fixture(params=[pytest.param("compiled", marks=pytest.mark.long), "eager"])
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(task: Task, model: Any) -> Any:
    return Tasks("cpu", lambda _: model)._made(task, None)


def test_iterations_follow_each_other_on_the_clock_of_this_process(launcher: str) -> None:
    task = made(Task("small", False, 1, 16, launcher), small("small"))
    before = time.perf_counter()
    found = task.repeat(ctypes.c_int(0), 1e9, 5)
    after = time.perf_counter()
    assert found.shape == (5, 2)
    assert before <= found[0, 0]
    assert found[-1, 1] <= after
    np.testing.assert_array_equal(found[1:, 0], found[:-1, 1])
    assert len(task.repeat(ctypes.c_int(1), 1e9, 5)) == 0
    assert len(task.repeat(ctypes.c_int(0), 0.0, 5)) == 0
    task.free()


def test_a_network_that_fails_is_told(launcher: str) -> None:
    task = made(Task("small", False, 1, 2, launcher), small("small"))
    # Images smaller than the convolution.
    with refused((GpuError, RuntimeError), "ernel size"):
        task.repeat(ctypes.c_int(0), 1e9, 1)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_both_launchers_train_alike(tmp_path: Path) -> None:
    """Three steps from the same weights, with the same images and labels."""
    import torch

    model = small("small")
    first = copy.deepcopy(model)
    torch.manual_seed(5)
    compiled = CompiledTask(Task("small", True, 4, 16), model, "cpu", None)
    torch.manual_seed(5)
    # What the network was traced with.
    torch.randn(2, 3, TRACED_PIXELS, TRACED_PIXELS)
    eager = EagerTask(lambda: training_step(model, torch.randn(4, 3, 16, 16)), None)
    for task in (compiled, eager):
        assert len(task.repeat(ctypes.c_int(0), 1e9, 3)) == 3
    compiled.save(tmp_path / "trained.pt")
    found = torch.jit.load(tmp_path / "trained.pt").state_dict()  # type: ignore[no-untyped-call]
    for name, weight in model.named_parameters():
        assert not torch.equal(weight, first.get_parameter(name))
        torch.testing.assert_close(found[name], weight.detach())


def test_tasks_run_side_by_side(launcher: str) -> None:
    gpu = TorchSharing("cpu", small, 0.3)
    front, behind = Task("small", False, 1, 16, launcher), Task("small", True, 2, 16, launcher)
    run = gpu.alone(front)
    assert (len(run.spans) > 3, run.memory_bytes, run.board) == (True, 0, {})
    for found in (gpu.threads(front, behind, 0), gpu.processes(front, behind)):
        assert found.behind[0, 0] < found.front[0, 0]
        assert found.front[0, 0] < found.behind[-1, 1]
    assert len(gpu.locked(front)) > 0
    gpu.clear()


@pytest.mark.long
def test_a_compiled_launcher_leaves_the_lock_to_others() -> None:
    """One call runs until another thread stops it, which it could not if the lock were held."""
    task = CompiledTask(Task("small", False, 1, 16), small("small"), "cpu", None)
    stop, found = ctypes.c_int(0), []
    thread = threading.Thread(target=lambda: found.append(task.repeat(stop, 1e9)))
    thread.start()
    stop.value = 1
    thread.join()
    assert len(found) == 1


def test_without_a_compiler_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(GpuError, "g++", "start"):
        compiled_task.library.__wrapped__()


def test_an_error_of_the_other_process_is_told() -> None:
    with refused(GpuError, "RuntimeError", "network"):
        OtherProcess("cpu", small, Task("none", True, 2, 16, "eager"))


def test_an_error_of_the_other_thread_is_told() -> None:
    stop = ctypes.c_int(0)

    def fails() -> None:
        raise RuntimeError("out of memory")

    with refused(GpuError, "beside"), BackgroundThread(fails, stop):
        pass
    assert stop.value == 1


def test_without_torchvision_or_a_gpu_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(InputError, "PyTorch", "GPU"):
        TorchSharing("cuda", small)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torchvision" else name)
    with refused(InputError, "torchvision"):
        TorchSharing()


def test_a_task_is_ready_when_it_has_run_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(EagerTask, "repeat", lambda *of: asked.append(of[-1]))
    tasks = Tasks("cpu", small)
    step, request = (Task("small", trains, 2, 16, "eager") for trains in (True, False))
    first = tasks.ready(step)
    assert tasks.ready(step) is first
    assert tasks.ready(step, URGENT) is not first
    tasks.ready(request)
    assert asked == [WARM_UP[True], WARM_UP[True], WARM_UP[False]]

    # The memory of one launcher's tasks is not there beside the other's.
    monkeypatch.setattr(compiled_task, "program_of", lambda _: NetworkBuilder((), lambda: lambda: None))
    tasks.ready(step._replace(launcher=RECORDED))
    assert tasks.ready(step) is not first


def test_a_process_has_no_training_beside_that_of_the_other_one() -> None:
    gpu = TorchSharing("cpu", small, 0.05)
    front, behind = Task("small", False, 1, 16, "eager"), Task("small", True, 2, 16, "eager")
    gpu.alone(behind)
    gpu.processes(front, behind)
    assert [task for task, _ in gpu._tasks._ready] == [front]
