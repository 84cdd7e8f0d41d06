"""NVIDIA's sharing mechanisms as Gilman and Walls (2021) found them.

Gilman and Walls ran batch-1 inference beside training at the largest batch that fits, on an RTX 3090, for 5000
requests one after the other or 500 at random times. Their networks were recorded here: VGG-19, DenseNet-201 and
ResNet-152 on an H200, each with its own training at the largest batch of a power of two that fits into 24 GB (5 times
that in 80 GB); ResNet-50 and AlexNet on an H100, beside ResNet-50's training (4 times the recorded batch in 24 GB, 12
times in 80 GB). They are carried to the GPU at hand: tiles that do not fit are split, and matrix kernels that fill the
GPU take longer by the ratio of the tensor cores' rates.

How fast the paper's hosts were is not known, and decides. Under time slicing the training beside 5,000 ResNet-50
requests took 90 s longer, at a turnaround 18 % longer: a request alone took at least 15.3 ms, if the training stood
still all the while. Claims are judged at that bound, which fits nothing else; other host speeds stand beside it.
Priority streams need both tasks as threads of one process, which slow each other's hosts: as recorded for ResNet-50, by
0.64 while the other is at work and 0.32 while it waits for the GPU. Under the other mechanisms tasks are processes.
MPS was not recorded: it needs a daemon, which may not run on the machines that we record on.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib import verdicts
from gpusched_env.experiments.lib.criteria import VERDICTS
from gpusched_env.experiments.lib.recorded import GraphPairs, graph_cells, recorded_pairs
from gpusched_env.experiments.lib.verdicts import (
    SHOWN,
    UNDECIDED,
    Compared,
    Finding,
    JudgedByName,
    Target,
    as_row,
    compared_table,
    findings_table,
    targets_table,
)
from gpusched_env.experiments.papers.concurrency import recorded
from gpusched_env.experiments.papers.concurrency.claims import CLAIMS, OFFERED, ORDER, PRIORITY, SETTING
from gpusched_env.experiments.papers.concurrency.controls import (
    ControlledClaim,
    claims_with,
    controlled,
    controls_table,
    outcome,
)
from gpusched_env.experiments.papers.concurrency.hosts import BOUND_US, RECORDED, OneProcess, one_process_cells
from gpusched_env.experiments.papers.concurrency.marks import MARKS
from gpusched_env.experiments.papers.concurrency.recorded import (
    LIMIT,
    RECORDED_ON,
    PairSide,
    SharedSide,
    magnitudes_table,
    order_by_lock,
    recorded_findings,
    recorded_table,
    shared_sides,
    shared_table,
)
from gpusched_env.experiments.papers.concurrency.runs import (
    ALONE,
    APART,
    HORIZON_US,
    MOST,
    PAPERS,
    REQUESTS,
    SEEDS,
    ConcurrencyRun,
    SharedRun,
    all_cells,
    judged_cells,
    shared_cells,
)
from gpusched_env.experiments.papers.concurrency.tables import (
    TURNAROUND,
    added_svg,
    mechanisms_table,
    one_process_table,
    published_figures,
    turnaround_targets,
)
from gpusched_env.experiments.papers.reproduction import Reproduction

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

JUDGED_IN = f"{PAPERS[1]}, {PAPERS[2]}, {PAPERS[0]}, {BOUND_US / 1e3:.1f} ms a request alone"
HOST = ["alone_us", "seed"]


class Paper(Reproduction):
    """Claims of the paper, judged; and pairs of networks recorded on an H100, within 15 % each."""

    name = "concurrency"
    title = "NVIDIA's sharing mechanisms"
    marks = MARKS
    legend = f"""\
Claims are judged in the paper's own setting ({JUDGED_IN}), over {len(SEEDS)} seeds with
{REQUESTS} requests each under every mechanism; *undecided*: seeds disagree. *Settings* counts those in which the sign
is the same, of all pairs, arrivals and GPUs: the others with the hosts of the recordings, one seed and
{HORIZON_US / 1e3:.0f} ms. *Added*: mean turnaround over that alone. *dev/mean*: standard deviation of turnarounds over
their mean. *Training*: speed, 1 alone. *Progress*: the sum of both tasks'. *Saves*: preemptions a request. A mechanism
under which a task never completes anything has no figure (nan)."""

    @staticmethod
    def cells() -> Sequence[verdicts.Simulation]:
        pairs = graph_cells(recorded_pairs())
        return [*judged_cells(), *one_process_cells(), *all_cells(), *shared_cells(), *pairs]

    def checks(self) -> list[JudgedByName]:
        return [*(each for each in self.controls if each.own), *self.turnarounds, *self.shared, *self.sides]

    @property
    def turnarounds(self) -> list[Target]:
        """Published turnarounds over those alone, beside ours."""
        return turnaround_targets(self.added)

    def outcome(self) -> str:
        busy = float(self.by_setting[PAPERS].utilisation["exclusive"])
        return outcome(self.controls, order_by_lock(), busy)

    def summary(self) -> str:
        within = sum(side.holds for side in self.shared)
        return (
            f"{self.tally()}; {len(claims_with(self.controls, SHOWN))} claims fail without their mechanism; "
            f"{within} of {len(self.shared)} slowdowns under the mechanisms within {LIMIT:.0%}"
        )

    @functools.cached_property
    def outcomes(self) -> DataFrame:
        """Mechanisms against the same requests, and the same training, alone; the index is setting, host speed, seed
        and mechanism.

        ``slowdown``: mean turnaround over that alone. ``training_speed``: work done over that alone, about 0 to 1.
        ``progress``: the sum of both tasks'; 1 is what taking turns without loss gives.
        """
        runs = self.to_frame(ConcurrencyRun)
        alone = runs[runs.mechanism == ALONE[0]][[*SETTING, *HOST, "turnaround_us"]]
        training = runs[runs.mechanism == ALONE[1]][["gpu", "pair", *HOST, "training_rate"]]
        runs = runs[~runs.mechanism.isin(ALONE)].merge(alone, on=[*SETTING, *HOST], suffixes=("", "_alone"))
        runs = runs.merge(training, on=["gpu", "pair", *HOST], suffixes=("", "_alone"))
        runs["slowdown"] = runs.turnaround_us / runs.turnaround_us_alone
        runs["training_speed"] = runs.training_rate / runs.pop("training_rate_alone")
        runs["progress"] = runs.training_speed + 1.0 / runs.slowdown
        return runs.set_index([*SETTING, *HOST, "mechanism"])

    @functools.cached_property
    def by_host(self) -> dict[float, list[DataFrame]]:
        """Outcomes by mechanism in the paper's own setting: for each host speed, those of every seed."""
        own = self.outcomes.xs(PAPERS, level=tuple(SETTING))
        return {
            float(alone_us): [of.droplevel(HOST) for _, of in some.groupby(level="seed")]
            for alone_us, some in own.groupby(level="alone_us")
        }

    @functools.cached_property
    def by_setting(self) -> dict[Any, DataFrame]:
        """Outcomes by mechanism, in every setting; in the paper's own the means over the seeds."""
        found = {
            where: of.droplevel([*SETTING, *HOST])
            for where, of in self.outcomes.groupby(level=SETTING, sort=False)
            if where != PAPERS
        }
        return {PAPERS: _mean(self.by_host[BOUND_US]), **found}

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """Every claim, judged."""
        return [claim.judged(self.by_setting, PAPERS, self.by_host[BOUND_US]) for claim in CLAIMS]

    @functools.cached_property
    def controls(self) -> list[ControlledClaim]:
        """Every claim beside what is switched off."""
        return controlled(self.by_host[BOUND_US], self.by_setting[PAPERS])

    @functools.cached_property
    def added(self) -> dict[tuple[str, str], float]:
        """What mechanisms add to the turnaround on the paper's GPU, percent, by network and mechanism."""
        return {
            (network, mechanism): 100.0 * (float(at.slowdown[mechanism]) - 1.0)
            for (gpu, network, arrivals), at in self.by_setting.items()
            if (gpu, arrivals) == (PAPERS[0], PAPERS[2])
            for mechanism in OFFERED
        }

    @functools.cached_property
    def published(self) -> list[Compared]:
        """Every published figure that has a counterpart, and those that lack one."""
        return published_figures(self.added)

    @functools.cached_property
    def sides(self) -> list[PairSide]:
        """Both sides of every recorded pair of networks that was run."""
        return recorded.sides(self.of(GraphPairs))

    @functools.cached_property
    def shared(self) -> list[SharedSide]:
        """Slowdowns under the mechanisms that were recorded, simulated for the same GPU."""
        return shared_sides(self.of(SharedRun))

    @functools.cached_property
    def recorded(self) -> list[Finding]:
        """What the paper says of time slicing and priority streams, judged on the recording."""
        return recorded_findings(self.shared)

    def data(self) -> dict[str, Any]:
        held = [finding.holds for finding in self.findings if finding.holds is not None]
        return {
            "horizon_us": HORIZON_US,
            "judged_in": JUDGED_IN,
            "seeds": list(SEEDS),
            "requests": REQUESTS,
            "by_host": self.swept.to_dict("records"),
            "one_process": [{**asdict(cell), **asdict(found)} for cell, found in self.of(OneProcess).items()],
            "observations": {"hold": sum(held), "scored": len(held), "each": [as_row(f) for f in self.findings]},
            "controls": [as_row(each) for each in self.controls],
            "published": [as_row(row) for row in self.published],
            "recorded": [as_row(finding) for finding in self.recorded],
            "shared": [as_row(side) for side in self.shared],
            "recorded_pairs": {
                "limit": LIMIT,
                "within": sum(side.holds for side in self.sides),
                "sides": len(self.sides),
                "each": [as_row(side) for side in self.sides],
            },
            "runs": self._all_runs().to_dict("records"),
        }

    @functools.cached_property
    def swept(self) -> DataFrame:
        """The paper's own setting at every host speed: what mechanisms add to the turnaround (%), of every seed."""
        own = self.outcomes.xs(PAPERS, level=tuple(SETTING)).reset_index()
        return own.assign(
            host=own.alone_us, alone_ms=own.turnaround_us_alone / 1e3, added=100.0 * (own.slowdown - 1.0)
        )[["host", "seed", "mechanism", "alone_ms", "added", "training_speed", "progress"]]

    def pictures(self) -> dict[str, bytes]:
        """What the mechanisms add to the turnaround, by how fast the hosts are."""
        shown = self.swept[self.swept.mechanism.isin((*OFFERED, APART, MOST))]
        published = {mechanism: added for network, mechanism, added in TURNAROUND if network == PAPERS[1]}
        return {"hosts": added_svg(shown, BOUND_US / 1e3, published)}

    def attachments(self) -> dict[str, DataFrame]:
        """Every run, and every recorded pair of networks."""
        shared = {"shared": frame([as_row(side) for side in self.shared])} if self.shared else {}
        return {"runs": self._all_runs(), "pairs": frame([as_row(side) for side in self.sides]), **shared}

    def tables(self) -> list[Table]:
        beyond = recorded.sides_table([side for side in self.sides if not side.holds], "Sides beyond the limit")
        own = mechanisms_table(PAPERS, self.by_setting[PAPERS])
        measured = (recorded.hardware_table(), recorded.sides_by_mode(self.sides), beyond)
        return [
            findings_table(f"What {RECORDED_ON} showed", self.recorded),
            recorded_table(),
            shared_table(self.shared),
            magnitudes_table(TURNAROUND, self.added, self.shared, recorded.resnet50()),
            controls_table(self.controls),
            targets_table("Published turnarounds over those alone", self.turnarounds),
            self._hosts(),
            *self._judged(),
            own,
            one_process_table(self.of(OneProcess)),
            *measured,
        ]

    def printed(self) -> list[Table]:
        return list(reversed(self.tables()))

    def _all_runs(self) -> DataFrame:
        speeds = self.outcomes[["slowdown", "training_speed", "progress"]].reset_index()
        return self.to_frame(ConcurrencyRun).merge(speeds, how="left")

    def _hosts(self) -> Table:
        """What is added to the turnaround at every host speed, and the published figures."""

        def shown(values: Any) -> str:
            low, high = f"{values.min():.0f}", f"{values.max():.0f}"
            return low if low == high else f"{low} to {high}"

        names = [*OFFERED[1:], PRIORITY, APART, MOST]
        rows = []
        for host, of in self.swept.groupby("host"):
            by_mechanism, at = of.groupby("mechanism"), self.by_host[host]
            orders = {bool(judge(each)[0]) for each in at for judge in [ORDER.judge] if judge}
            speed = "as recorded" if host == RECORDED else "judged" if host == BOUND_US else ""
            verdict = UNDECIDED if len(orders) > 1 else VERDICTS[orders.pop()]
            added = [shown(by_mechanism.get_group(name).added) for name in names]
            rows.append((f"{of.alone_ms.mean():.1f}", *added, verdict, speed))
        published = {mechanism: added for network, mechanism, added in TURNAROUND if network == PAPERS[1]}
        rows.append(("published", *(f"{published[n]:.0f}" if n in published else "" for n in names), "", ""))
        return Table(
            "Added to ResNet-50's turnaround, %, by how fast hosts are",
            ("alone ms", *names, "published order", "hosts"),
            rows,
            f"Ranges over {len(SEEDS)} seeds, {REQUESTS} requests each. *Hosts apart*: as if threads did "
            "not slow each other; *DenseNet-201's hosts*: as much as those of the network that was slowed most.\n\n"
            "![Added to the turnaround by how fast hosts are](concurrency-hosts.svg)",
        )

    def _judged(self) -> list[Table]:
        return [findings_table("Observations", self.findings), compared_table("Published figures", self.published)]


def _mean(frames: Sequence[DataFrame]) -> DataFrame:
    """The mean of frames with the same rows and columns."""
    return sum(frames[1:], frames[0]) / len(frames)
