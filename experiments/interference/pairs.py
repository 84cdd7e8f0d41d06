"""What the model of interference is fitted to and judged on, and the ridge regression that fits it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, Literal

import msgspec
import numpy as np

from gpusched_env.data import recorded_names
from gpusched_env.experiments.games.kernels import PLAY
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import RECORDED_ON, GraphPair, measurements, situation, tenant
from gpusched_env.experiments.lib.verdicts import run_cells
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.made import Fingerprints, made_by
from gpusched_env.planning.interference import Floats, PairModel, features, products, speed_table, speeds_in_order
from gpusched_env.scenarios.profiles import JobDemand
from gpusched_env.workload.workload import Workload, decode_workload

Launch = Literal["host", "graph"]
"""``host``: kernel by kernel, by a host that does nothing else; ``graph``: an iteration is one launch."""
LAUNCHES: Final[tuple[Launch, ...]] = ("host", "graph")
UNSEEN: Final = (
    "alexnet_fp32_infer_b1", "bert_infer_b1_s128", "bodies9_step_b2048", "dlrm_infer_b256",
    "fcos_resnet50_fpn_infer_b1", "lstm_infer_b16_t50", "randwire_infer_b1", "resnet50_infer_b1",
    "retinanet_resnet50_fpn_infer_b1", "ssd300_vgg16_infer_b1", "vgg16_fp32_infer_b1",
)  # fmt: skip
"""Networks that are in no pair of the fit: those that scenarios of serving hold out, and five of other kinds."""
SHORTEST_US, ITERATIONS = 20_000.0, 10.0
"""Networks are simulated this long, or for so many iterations of the longest."""
COMPANIES: Final = 24
"""How many companies of each size of :data:`SIZES` there are."""
COMPANIES_SEED: Final = 7
SIZES: Final = (3, 4, 6)
SCHEMA: Final = "gpusched-side-by-side/2"
FITTED_ON: Final = (RECORDED_ON, "a100-sxm", "rtx-3090")
UNSEEN_ON: Final = (*FITTED_ON, "v100-sxm")
"""GPUs of the pairs of fitted networks, and of unseen ones. Networks are carried over to all but the first."""
JOBS = 100_000
"""Jobs of a network: more than any does in that time."""


def fitted_networks() -> list[str]:
    """Shipped recorded networks that the fit is of; of a network with three inputs one. The last four were recorded
    after it."""
    left_out = ("toy", "dynamic_routing_input", "vgg19", "densenet201", "resnet152", "llama")
    return [name for name in recorded_names() if not name.startswith(left_out) and name not in UNSEEN]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Networks that always have a job, each one's urgency above the next one's."""

    networks: tuple[str, ...]
    launch: Launch
    gpu: str = RECORDED_ON

    def run(self, device: str) -> list[float]:
        """Jobs a microsecond of each, up to the end of its last one."""
        launched = {"launch": "graph"} if self.launch == "graph" else {"host_us": 1.0}
        backlog = {"arrivals": {"kind": "backlog"}, "jobs": JOBS, **launched}
        tenants = [
            tenant(name, name=f"{name} ({place})", priority=place, **backlog)
            for place, name in enumerate(self.networks)
        ]
        problem = situation(tenants, self.gpu)
        longest_us = max(program.alone_us for program in problem.programs)
        problem = situation(tenants, self.gpu, max(SHORTEST_US, ITERATIONS * longest_us))
        jobs = play("priority-streams", problem, seed=0, device=device, record="kernels").timeline.jobs.dict()
        ends_us = [jobs["completed_us"][jobs["tenant"] == place] for place in range(len(self.networks))]
        return [float(len(ends) / ends.max()) if len(ends) else 0.0 for ends in ends_us]


class Speeds(msgspec.Struct, frozen=True):
    """Networks side by side, the most urgent first, and how fast each was, in multiples of its speed alone."""

    networks: list[str]
    launch: Launch
    speeds: list[float]
    gpu: str = RECORDED_ON


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """All that was simulated."""

    schema: str = SCHEMA
    pairs: list[Speeds]
    companies: list[Speeds]
    """Speeds of three and more networks, all among the fitted ones or all among the unseen ones."""
    made: Fingerprints = Fingerprints()
    """Hashes of what they were made by."""

    def of_networks(self, wanted: Iterable[str]) -> list[Speeds]:
        """The pairs of networks that are all among ``wanted``."""
        return _among(self.pairs, wanted)

    def companies_of(self, wanted: Iterable[str], size: int | None = None) -> list[Speeds]:
        """The companies of networks that are all among ``wanted``, those of one size or all."""
        return [one for one in _among(self.companies, wanted) if size in (None, len(one.networks))]


def _among(groups: Iterable[Speeds], wanted: Iterable[str]) -> list[Speeds]:
    names = set(wanted)
    return [group for group in groups if names.issuperset(group.networks)]


def simulate(device: str = "compiled", workers: int | None = None, on_progress: Progress | None = None) -> Simulated:
    """Every network beside every other one, among the fitted ones and among the unseen ones; some companies of more."""
    groups = [(fitted_networks(), gpu) for gpu in FITTED_ON] + [(list(UNSEEN), gpu) for gpu in UNSEEN_ON]
    kinds = [(group, launch, gpu) for group, gpu in groups for launch in LAUNCHES]
    alone = [SideBySide((name,), launch, gpu) for group, launch, gpu in kinds for name in group]
    pairs = [SideBySide(two, launch, gpu) for group, launch, gpu in kinds for two in itertools.permutations(group, 2)]
    companies = [SideBySide(chosen, "host", gpu) for group, gpu in groups for chosen in _companies(group)]
    made = made_by({device: [type(new_device(device)).__module__, *PLAY, __name__]}, {})
    rates = run_cells([*alone, *pairs, *companies], device, workers, on_progress)
    return Simulated(
        pairs=[_speeds(cell, rates) for cell in pairs],
        companies=[_speeds(cell, rates) for cell in companies],
        made=made,
    )


def _companies(networks: Sequence[str]) -> list[tuple[str, ...]]:
    """Some of each size, in random order of urgency."""
    rng = np.random.default_rng(COMPANIES_SEED)
    drawn = [rng.choice(networks, size, replace=False) for size in SIZES for _ in range(COMPANIES)]
    return list(dict.fromkeys(tuple(map(str, one)) for one in drawn))


def _speeds(cell: SideBySide, rates: Mapping[SideBySide, list[float]]) -> Speeds:
    alone = [rates[SideBySide((name,), cell.launch, cell.gpu)][0] for name in cell.networks]
    speeds = [round(rate / own, 5) for rate, own in zip(rates[cell], alone, strict=True)]
    return Speeds(list(cell.networks), cell.launch, speeds, cell.gpu)


def demand_of(
    network: str, launch: Launch, gpu: str = RECORDED_ON, own: Mapping[str, Workload] | None = None
) -> JobDemand:
    """What a network asks of a GPU; ``own``: workloads that come before the shipped ones."""
    launched = {"launch": "graph"} if launch == "graph" else {"host_us": 1.0}
    return situation([tenant(network, **launched)], gpu, workloads=own).knowledge.tenants[0].demand


class RecordedPairs(msgspec.Struct, frozen=True):
    """Recorded pairs with an urgent foreground, on one GPU, by networks of which the simulator has traces."""

    what: str
    gpu: str
    pairs: list[GraphPair]
    workloads: dict[str, Workload]


def recorded_pairs_by_group() -> list[RecordedPairs]:
    """The recorded pairs that are shipped, group by group."""
    folder = resources.files("gpusched_env.data") / "measurements"
    return [
        _recorded("networks of the fit and others, H100", "h100-sxm", "model_pairs.jsonl", None),
        _recorded("networks recorded later, H100", "h100-sxm", "unseen_networks/model_pairs.jsonl",
                  folder / "h100" / "unseen_networks" / "traces"),
        _recorded("H200", "h200-sxm", "model_pairs.jsonl", folder / "h200" / "traces"),
    ]  # fmt: skip


def _recorded(what: str, gpu: str, path: str, traces: Traversable | None) -> RecordedPairs:
    files = [] if traces is None else sorted(traces.iterdir(), key=lambda file: file.name)
    own = {file.name.split(".")[0]: decode_workload(file.read_bytes(), file.name) for file in files}
    known = {*own, *recorded_names()}
    rows = [
        msgspec.convert(row, GraphPair) for row in measurements(path, gpu.removesuffix("-sxm")) if row["what"] == "pair"
    ]
    pairs = [pair for pair in rows if pair.mode == "priority" and {pair.fg, pair.bg} <= known]
    return RecordedPairs(what, gpu, pairs, own)


def networks_of(pairs: Sequence[GraphPair]) -> list[str]:
    """Networks of recorded pairs, each once."""
    return list(dict.fromkeys(name for pair in pairs for name in (pair.fg, pair.bg)))


PENALTIES: Final = (10.0, 30.0, 100.0, 300.0, 1000.0)
EXPONENTS: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
FOLDS: Final = 5
SLOWEST: Final = 1e-3
"""The speed of which a logarithm is taken where nothing was done at all."""
Demands = Mapping[tuple[str, str, str], JobDemand]
"""Demands by network, how it is launched, and the GPU."""


def fit(pairs: Sequence[Speeds], demands: Demands, penalty: float, fitted_to: str) -> PairModel:
    """The model with the smallest sum of squared errors of log speeds and ``penalty`` times squared weights."""
    seen = np.array([features(demands[name, pair.launch, pair.gpu]) for pair in pairs for name in pair.networks])
    mean, scale = seen.mean(axis=0), seen.std(axis=0)
    terms = np.array([
        products(*((features(demands[name, pair.launch, pair.gpu]) - mean) / scale for name in pair.networks))
        for pair in pairs
    ])  # fmt: skip
    logs = np.log(np.maximum([pair.speeds for pair in pairs], SLOWEST))
    shrunk = penalty * np.eye(terms.shape[1])
    shrunk[0, 0] = 0.0
    weights = np.linalg.solve(terms.T @ terms + shrunk, terms.T @ logs).T
    rounded = [_rounded(row) for row in weights]
    return PairModel(fitted_to=fitted_to, mean=_rounded(mean), scale=_rounded(scale), weights=rounded, exponent=1.0)


def with_exponent(model: PairModel, companies: Sequence[Speeds], demands: Demands) -> PairModel:
    """The model with the exponent of :data:`EXPONENTS` whose mean error on companies is least."""

    def error(exponent: float) -> float:
        found = company_speeds(msgspec.structs.replace(model, exponent=exponent), companies, demands)
        off = [np.abs(np.array(speeds) - one.speeds).mean() for speeds, one in zip(found, companies, strict=True)]
        return float(np.mean(off))

    return msgspec.structs.replace(model, exponent=min(EXPONENTS, key=error))


def company_speeds(model: PairModel, companies: Sequence[Speeds], demands: Demands) -> list[list[float]]:
    """Predicted speeds of networks side by side."""
    return [
        speeds_in_order(
            range(len(one.networks)),
            speed_table([demands[name, one.launch, one.gpu] for name in one.networks], model),
            model.exponent,
        )
        for one in companies
    ]


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def errors(model: PairModel, pairs: Sequence[Speeds], demands: Demands) -> Floats:
    """Relative errors of predicted speeds, shape ``(pairs, 2)``."""
    found = [model.speeds(*(demands[name, pair.launch, pair.gpu] for name in pair.networks)) for pair in pairs]
    return np.array(found) / np.maximum([pair.speeds for pair in pairs], SLOWEST) - 1.0


def left_out_error(pairs: Sequence[Speeds], demands: Demands, penalty: float) -> float:
    """Mean absolute error on pairs of networks that were both left out of a fit to all pairs of the others."""
    names = sorted({name for pair in pairs for name in pair.networks})
    order = np.random.default_rng(0).permutation(len(names))
    found = []
    for fold in range(FOLDS):
        out = {names[i] for i in order[fold::FOLDS]}
        model = fit([pair for pair in pairs if out.isdisjoint(pair.networks)], demands, penalty, "a fold")
        found.append(np.abs(errors(model, [pair for pair in pairs if out.issuperset(pair.networks)], demands)).ravel())
    return float(np.concatenate(found).mean())
