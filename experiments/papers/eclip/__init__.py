"""ECLIP (Quach et al., ISLPED 2025): kernels of co-located models on masks of compute units, changed only so often.

The paper runs seven mixes of two or three inference models on an AMD MI50 (60 compute units, CUs), each worker a closed
loop, and reports gains over all workers on one default stream. Here the same mixes run on a simulated MI50.

* *Models*: recorded PyTorch programs stand in (batch 1, carried over from an H100), each with as many kernels a
  request as the paper's Table I implies (its IOCTL row has one switch a kernel). BERT stands in for ALBERT,
  MobileNetV3 for DenseNet-201 and ShuffleNet, ResNet-101 for ResNet-152 and ResNeXt-101, VGG-16 for VGG-19. The
  "resnet15" of the table has the kernels of a ResNet-152. That ResNeXt-101 has 440 of the 728 kernels of mix 5 is
  assumed. Products in single precision that were recorded without tensor cores are carried over by the GPUs' rates
  without them.
* *Hosts* launch every 5 us, so that the GPU is the limit, as with the paper's largest load that is served.
* *Baseline*, literally: "all workers on the default 60-CU stream": kernels run one after the other. Streams of their
  own without masks are shown beside it; the paper has no such row. Workers of KW-IOCTL have a queue each.
* *The optimiser's* programme is solved exactly for a worker beside the others, by a dynamic programme instead of
  Gurobi, and by best responses between workers. Its overlap is taken as written: a worker overlaps itself.
* *Thresholds*: a kernel is "not slowed" up to 5 %, which the paper does not say. Curves of time by CUs follow from
  grid, occupancy and bandwidth.
* *A hop* between queues costs what an event does (5 us, a guess), *idle power* is 30 W (a guess), a busy CU takes 3.5
  W (the rest of the board's 300 W); tables below vary the first two. Nothing is fitted to the paper's figures.

Bars of the paper's Figures 4 to 6 are not available as numbers: orders, means and the largest gains are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from gpusched_env.data import stored
from gpusched_env.display.table import NONE, Table
from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import tenant
from gpusched_env.experiments.lib.verdicts import Simulation, Target, as_row, table_of, targets_table
from gpusched_env.experiments.papers.eclip.marks import MARKS
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU: Final = "mi50"
BASELINE, MODEL_WISE, PREALLOC, IOCTL, ECLIP = "baseline", "model-wise", "KW-Prealloc", "KW-IOCTL", "ECLIP"
OWN = "own streams"
"""No part of the paper: each worker has a stream of its own, none has a mask."""
SCHEDULERS: Final = {
    BASELINE: "default-stream", OWN: "pass-through", MODEL_WISE: "model-wise", PREALLOC: "kernel-wise",
    IOCTL: "kernel-wise-ioctl", ECLIP: "eclip",
}  # fmt: skip
RECORDED: Final = {
    "albert": ("bert_infer_b1_s128", 304), "densenet201": ("mobilenetv3_infer_b1", 711),
    "vgg19": ("vgg16_fp32_infer_b1", 62), "alexnet": ("alexnet_fp32_infer_b1", 34),
    "resnet152": ("resnet101_fp32_infer_b1", 517), "resnext101": ("resnet101_fp32_infer_b1", 440),
    "shufflenet": ("mobilenetv3_infer_b1", 288),
}  # fmt: skip
"""What stands in for each model, and the kernels of a request that the paper's Table I implies."""
MIXES: Final = {
    1: ("albert", "albert", "densenet201"), 2: ("albert", "densenet201"), 3: ("albert", "densenet201", "vgg19"),
    4: ("alexnet", "resnet152", "vgg19"), 5: ("resnext101", "shufflenet"), 6: ("densenet201", "densenet201"),
    7: ("alexnet", "alexnet", "alexnet"),
}  # fmt: skip
"""The paper's Table I; its "resnet15" has the kernels of a ResNet-152."""
HORIZON_US = 400_000.0
HOST_US = 5.0
"""Host time of a worker for each launch: the paper's load is the most that is served, so that the GPU is the limit."""
BARRIER_US = load_gpu(GPU).timing.event_latency_us
CHANGES = 14


@dataclass(frozen=True, slots=True)
class MixOutcome:
    """What a mix comes to; by worker where it is a tuple."""

    jobs: tuple[int, ...]
    throughput_per_s: tuple[float, ...]
    p95_us: tuple[float, ...]
    switches: tuple[float, ...]
    """Changes of the hardware queue, or calls for a mask, in a request."""
    energy_j: float
    end_us: float
    jobs_per_j: float

    @property
    def total_per_s(self) -> float:
        """Requests a second of all workers."""
        return sum(self.throughput_per_s)

    @property
    def power_w(self) -> float:
        return self.energy_j / (self.end_us * 1e-6)


@dataclass(frozen=True, slots=True)
class MixRun:
    """A mix under a scheduler."""

    mix: int
    scheduler: str
    host_us: float | None = HOST_US
    """``None``: hosts as recorded."""
    barrier_us: float = BARRIER_US
    changes: int = CHANGES

    def run(self, device: str) -> MixOutcome:
        name = SCHEDULERS[self.scheduler] + (f"(changes={self.changes})" if self.scheduler == ECLIP else "")
        episode = play(name, problem(self.mix, self.host_us, self.barrier_us), 0, device=device, record="kernels")
        metrics = episode.metrics
        return MixOutcome(
            jobs=tuple(tenant.completed for tenant in metrics.tenants),
            throughput_per_s=tuple(tenant.throughput_per_s for tenant in metrics.tenants),
            p95_us=tuple(tenant.turnaround_p95_us for tenant in metrics.tenants),
            switches=tuple(_switches(episode, self.scheduler)),
            energy_j=metrics.energy_j,
            end_us=metrics.end_us,
            jobs_per_j=metrics.jobs_per_j,
        )


@functools.lru_cache(maxsize=32)
def problem(mix: int, host_us: float | None, barrier_us: float) -> Problem:
    """The workers of a mix, each a closed loop of one model's requests."""
    gpu = load_gpu(GPU)
    gpu = msgspec.structs.replace(gpu, timing=msgspec.structs.replace(gpu.timing, event_latency_us=barrier_us))
    workloads = {model: scaled(*RECORDED[model]) for model in MIXES[mix]}
    hosts = {} if host_us is None else {"host_us": host_us}
    scenario = make_scenario(
        {
            "name": "ECLIP", "gpu": GPU, "horizon_us": HORIZON_US, "variation": False, "physics": 2,
            "tenants": [tenant(model, **{"name": f"{model} {w}"}, **hosts) for w, model in enumerate(MIXES[mix], 1)],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads=workloads)


def scaled(name: str, kernels: int) -> Workload:
    """A recorded workload with so many kernels a request: each comes as often as any other, one more or less, and where
    it was; or only every so many of them come."""
    workload = load_workload(name)
    ops = workload.variants[0].ops
    launches = [place for place, op in enumerate(ops) if op.kind is OpKind.KERNEL]
    times = np.bincount(np.arange(kernels) * len(launches) // kernels, minlength=len(launches))
    often = dict(zip(launches, times.tolist(), strict=True))
    found: list[Op] = [op for place, op in enumerate(ops) for _ in range(often.get(place, 1))]
    iteration_us = workload.iteration_us[0] * kernels / len(launches)
    return msgspec.structs.replace(workload, variants=(Variant(ops=tuple(found)),), iteration_us=(iteration_us,))


def _switches(episode: Episode, scheduler: str) -> Iterator[float]:
    """Switches of a request by worker, mean of those between the first and the last one; of IOCTL one a kernel."""
    kernels = episode.timeline.kernels.dict()
    for worker in range(len(episode.problem.programs)):
        mine = kernels["tenant"] == worker
        mine &= (kernels["job"] > 0) & (kernels["job"] < kernels["job"][mine].max())
        order = np.argsort(kernels["id"][mine])
        streams, jobs = (kernels[name][mine][order] for name in ("stream", "job"))
        changes = np.count_nonzero((np.diff(streams) != 0) & (np.diff(jobs) == 0))
        yield float(len(jobs) if scheduler == IOCTL else changes) / max(1, len(np.unique(jobs)))


VARIED: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "as above": ({}, (PREALLOC, ECLIP)),
    **{f"a hop costs {us:g} us": ({"barrier_us": us}, (PREALLOC, ECLIP)) for us in (2.0, 10.0, 20.0, 40.0)},
    **{f"at most {most} switches": ({"changes": most}, (ECLIP,)) for most in (0, 4, 8, 28, 56)},
    "hosts as recorded": ({"host_us": None}, (BASELINE, ECLIP)),
}
"""What the gains depend on: fields of cells, and the schedulers that are run so."""
VARIED_COLUMNS = (
    "varied = {varied} | ECLIP, throughput = {gain:+.1f} % | ECLIP, requests a joule = {saved:+.1f} % | "
    "switches of a mix = {switches:.1f} | KW-Prealloc, throughput = {prealloc}"
)
VARIED_NOTE = f"As above: a hop costs {BARRIER_US:g} us, at most {CHANGES} switches, a launch every {HOST_US:g} us."
IDLES_W = (15.0, 30.0, 60.0, 100.0)
IDLE_W = load_gpu(GPU).power.idle_w
PUBLISHED = stored("published", "eclip.json")
"""Table I and the gains."""
COUNTED = (IOCTL, PREALLOC, ECLIP)


class Paper(Reproduction):
    """Orders, switches, gains, and what they depend on."""

    name = "eclip"
    title = "ECLIP"
    marks = MARKS
    legend = (
        "*Throughput*: requests a second of all workers. *Requests a joule*: completed requests over the energy of the "
        "board. *Switches*: changes of the hardware queue within a request (of KW-IOCTL: kernels), summed over the "
        "workers of a mix. *Gains* are over the baseline, *means* over the seven mixes."
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        main = [MixRun(mix, of) for mix in MIXES for of in SCHEDULERS]
        varied = [MixRun(mix, of, **how) for how, run in VARIED.values() for mix in MIXES for of in run]
        return list(dict.fromkeys([*main, *varied]))

    def served(self, mix: int, scheduler: str, **how: Any) -> MixOutcome:
        """The figures of a cell."""
        found: MixOutcome = self.runs[MixRun(mix, scheduler, **how)]
        return found

    def gain(self, figure: str, scheduler: str, over: str = BASELINE, **how: Any) -> dict[int, float]:
        """The relative gain (0 is none) of a figure over that of another scheduler on the same hosts, by mix."""
        hosts = {key: value for key, value in how.items() if key == "host_us"}
        pairs = {mix: (self.served(mix, scheduler, **how), self.served(mix, over, **hosts)) for mix in MIXES}
        return {mix: getattr(ours, figure) / getattr(other, figure) - 1.0 for mix, (ours, other) in pairs.items()}

    def mean(self, figure: str, scheduler: str, over: str = BASELINE, **how: Any) -> float:
        """The mean of :meth:`gain`, in percent."""
        return 100.0 * float(np.mean(list(self.gain(figure, scheduler, over, **how).values())))

    def p95(self, mix: int, scheduler: str) -> float:
        """95th percentile of latency over that of the baseline, mean over the workers."""
        base = self.served(mix, BASELINE).p95_us
        return float(np.mean(np.array(self.served(mix, scheduler).p95_us) / np.array(base)))

    def beyond_idle(self) -> float:
        """How much ECLIP changes the energy beyond the board's idle power that a request takes, mean in percent."""
        of = {each: (each.energy_j - IDLE_W * each.end_us * 1e-6) / sum(each.jobs) for each in self.runs.values()}
        return 100.0 * float(np.mean([of[self.served(m, ECLIP)] / of[self.served(m, BASELINE)] - 1.0 for m in MIXES]))

    @functools.cached_property
    def _switches(self) -> dict[int, dict[str, float]]:
        return {mix: {of: sum(self.served(mix, of).switches) for of in COUNTED} for mix in MIXES}

    def checks(self) -> list[Target]:
        targets = []
        for first, second in ((ECLIP, BASELINE), (BASELINE, PREALLOC), (PREALLOC, IOCTL)):
            wrong = [mix for mix, gain in self.gain("total_per_s", first, second).items() if gain <= 0.0]
            note = f"not in {', '.join(map(str, wrong))}" if wrong else ""
            what = f"mixes in which {first} serves more than {second}"
            targets.append(Target.of_figure(what, len(MIXES), len(MIXES) - len(wrong), note=note))
        most = max(max(self.served(mix, ECLIP).switches) for mix in MIXES)
        what = "ECLIP: most switches of a worker's request"
        targets.append(Target(what, 0.0, CHANGES, most, published=f"at most {CHANGES}"))
        for mix, counts in self._switches.items():
            theirs = PUBLISHED["switches_a_request"][str(mix)][ECLIP]
            what = f"ECLIP: switches of mix {mix}"
            targets.append(Target(what, theirs / 2.0, theirs * 2.0, counts[ECLIP], published=f"{theirs:g}"))
        gains = PUBLISHED["gain_percent"]
        served, saved = gains["throughput_mean"], gains["requests_a_joule_mean"]
        return [
            *targets,
            Target.of_figure("ECLIP: mean gain in throughput, %", served, self.mean("total_per_s", ECLIP), 6.0),
            Target.of_figure("ECLIP: mean gain in requests a joule, %", saved, self.mean("jobs_per_j", ECLIP), 10.0),
            *self._widest(),
            Target(
                "ECLIP: mean change of board power, %", -math.inf, 0.0, self.mean("power_w", ECLIP), published="falls"
            ),
        ]

    def _widest(self) -> list[Target]:
        """Of mix 7, in which the paper's ECLIP gains most; and in how many no other scheduler of it serves more."""
        others = [of for of in SCHEDULERS if of not in (ECLIP, OWN)]
        best = [mix for mix in MIXES if all(self.gain("total_per_s", ECLIP, other)[mix] > 0.0 for other in others)]
        served, saved = (100.0 * self.gain(figure, ECLIP)[7] for figure in ("total_per_s", "jobs_per_j"))
        gains, note = PUBLISHED["gain_percent"], f"in {', '.join(map(str, best)) or 'none'}"
        joule = "ECLIP: gain in requests a joule of mix 7, %"
        return [
            Target.of_figure("mixes in which ECLIP serves most of all", len(MIXES), len(best), note=note),
            Target.of_figure("ECLIP: gain in throughput of mix 7, %", gains["throughput_mix_7"], served, 6.0),
            Target.of_figure(joule, gains["requests_a_joule_mix_7"], saved, 10.0),
        ]

    def outcome(self) -> str:
        """Why it comes out as it does."""
        own, over_own = self.mean("total_per_s", OWN), self.mean("total_per_s", ECLIP, OWN)
        saved = PUBLISHED["gain_percent"]["requests_a_joule_mean"]
        gains = self.gain("total_per_s", ECLIP).values()
        return (
            "Why:\n\n"
            f"* The gain differs much by mix, from {min(gains):+.0%} to {max(gains):+.0%}. One episode a cell: a gain "
            "of 2 % is within the resolution of counting requests.\n"
            "* What gains is that kernels of several workers run at a time, which the baseline's one stream does not "
            f"let them. Streams of their own without a mask gain {own:+.0f} %; beside those ECLIP serves "
            f"{over_own:+.0f} %.\n"
            "* Plans use the whole budget of switches, where the paper's often stop short of it: nothing in the "
            "programme makes a switch cost.\n"
            "* Idle power is not what lacks. Were all power idle, requests a joule would gain as much as throughput. "
            f"The paper's {saved} % need the energy beyond idle to fall by {100.0 - 1e4 / (100.0 + saved):.0f} % a "
            f"request at least. Here it changes by {self.beyond_idle():+.0f} %: a mask saves nothing where a kernel's "
            "blocks leave units empty anyway, and few kernels of these stand-ins stay quick on half of the units. Nor "
            "does any cost of a hop or budget of switches below bring it."
        )

    def summary(self) -> str:
        return (
            f"{self.tally()}; mean gains {self.mean('total_per_s', ECLIP):+.0f} % in "
            f"throughput, {self.mean('jobs_per_j', ECLIP):+.0f} % in requests a joule"
        )

    def mixes(self) -> list[dict[str, Any]]:
        """A row a mix and scheduler."""
        return [
            {
                "mix": mix, "models": ", ".join(MIXES[mix]), "scheduler": of, "power_w": self.served(mix, of).power_w,
                "per_s": self.served(mix, of).total_per_s, "gain": self.gain("total_per_s", of)[mix],
                "per_j": self.served(mix, of).jobs_per_j, "saved": self.gain("jobs_per_j", of)[mix],
                "p95": self.p95(mix, of),
            }
            for mix in MIXES
            for of in SCHEDULERS
        ]  # fmt: skip

    def means(self) -> list[dict[str, Any]]:
        """A row a scheduler."""
        return [
            {
                "scheduler": of, "gain": self.mean("total_per_s", of), "saved": self.mean("jobs_per_j", of),
                "power": self.mean("power_w", of), "p95": float(np.mean([self.p95(mix, of) for mix in MIXES])),
            }
            for of in SCHEDULERS
        ]  # fmt: skip

    def varied(self) -> list[dict[str, Any]]:
        """Means by what is varied."""
        return [
            {
                "varied": what,
                "gain": self.mean("total_per_s", ECLIP, **how),
                "saved": self.mean("jobs_per_j", ECLIP, **how),
                "switches": float(np.mean([sum(self.served(mix, ECLIP, **how).switches) for mix in MIXES])),
                "prealloc": f"{self.mean('total_per_s', PREALLOC, **how):+.1f} %" if PREALLOC in run else NONE,
            }
            for what, (how, run) in VARIED.items()
        ]

    def by_idle(self) -> list[dict[str, Any]]:
        """Means by the board's idle power, which changes no schedule."""

        def per_j(mix: int, of: str, idle_w: float) -> float:
            energy_j = self.served(mix, of).energy_j + (idle_w - IDLE_W) * self.served(mix, of).end_us * 1e-6
            return sum(self.served(mix, of).jobs) / energy_j

        ratios = {w: [per_j(mix, ECLIP, w) / per_j(mix, BASELINE, w) for mix in MIXES] for w in IDLES_W}
        return [{"idle_w": watts, "saved": 100.0 * float(np.mean(found)) - 100.0} for watts, found in ratios.items()]

    def tables(self) -> list[Table]:
        columns = " | ".join(["mix = {mix}", *(f"{of} = {{{of}}} ({{theirs[{of}]}})" for of in COUNTED)])
        theirs = PUBLISHED["switches_a_request"]
        switches = [
            {"mix": mix, "theirs": theirs[str(mix)], **{of: f"{counts[of]:.0f}" for of in counts}}
            for mix, counts in self._switches.items()
        ]
        models = [{"model": model, "as": name, "kernels": kernels} for model, (name, kernels) in RECORDED.items()]
        return [
            targets_table("What is judged", self.checks()),
            table_of(
                "Means over the mixes",
                self.means(),
                "scheduler = {scheduler} | throughput = {gain:+.1f} % | requests a joule = {saved:+.1f} % | "
                "board power = {power:+.1f} % | 95th percentile of latency = {p95:.2f}",
            ),
            table_of("Switches a request", switches, columns, "In brackets Table I. KW-IOCTL has one a kernel."),
            table_of(
                "Idle power of the board",
                self.by_idle(),
                "idle = {idle_w:g} W | ECLIP, requests a joule = {saved:+.1f} %",
            ),
            table_of("What the gains depend on", self.varied(), VARIED_COLUMNS, VARIED_NOTE),
            table_of("Models", models, "model = {model} | stands in = {as} | kernels a request = {kernels}"),
        ]

    def details(self) -> list[Table]:
        columns = (
            "mix = {mix} | models = {models} | scheduler = {scheduler} | requests a second = {per_s:.0f} | "
            "gain = {gain:+.1%} | requests a joule = {per_j:.2f} | gain = {saved:+.1%} | board = {power_w:.0f} W | "
            "95th percentile of latency = {p95:.2f}"
        )
        return [table_of("Mixes", self.mixes(), columns, "Latencies are over the baseline's, mean over the workers.")]

    def data(self) -> dict[str, Any]:
        return {
            "targets": [as_row(target) for target in self.checks()],
            "means": self.means(),
            "mixes": self.mixes(),
            "switches_a_request": [{"mix": mix, **counts} for mix, counts in self._switches.items()],
            "varied": self.varied(),
            "by_idle_w": self.by_idle(),
            "runs": self.to_frame(MixRun).to_dict("records"),
        }
