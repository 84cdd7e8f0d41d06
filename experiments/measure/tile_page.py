"""The page of kernels that synchronise their tiles on a real GPU: ``python -m`` this module writes it.

cuSync lets a consumer's thread blocks wait for tiles of its producer instead of the whole kernel. Here both kernels run
on a GPU, in two streams, the producer's of higher priority: each of its blocks posts a semaphore (a fence and an atomic
addition), and blocks of the consumer spin on semaphores before their steps. Semaphores and values are those that the
simulator's laws give. A wait kernel of one block holds the consumer up until the producer's first block has started.

Grids are those of GPT-3's MLP with 1,536, 2,048 and 3,072 tokens, as cuSync's artifact has them for a V100 without
split-K: 6, 8 or 12 rows of 24 tiles, then of 48. They run on all SMs, and on the 80 that a V100 has, with the others
occupied. A *spin* block takes a set time: that of the V100's blocks, or an eighth of it. A *product* block computes a
tile of 128 x 128 elements of a matrix product, and its result is checked.

The prediction knows each kernel's time alone and the costs of a post, a wait and the wait kernel. It knows no time of
both kernels together. A wait was timed in a loop of its own: without the lookups of semaphores, which a wait before
each step has in the pairs. So gains by tiles are predicted too high, by a point with long blocks and by up to 11 with
short ones, and those by rows are not.

*Gain*: by how much less time the pair takes than in stream order. *If packed*: the gain if no slot was ever idle, which
needs no simulator. *Range*: from the shortest to the longest repetition.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.data.dependent_kernels import published
from gpusched_env.display.table import Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.lib.pages import about, page
from gpusched_env.experiments.lib.verdicts import table_of
from gpusched_env.experiments.measure.tile_rows import (
    POLICIES,
    STREAM,
    UNGUARDED,
    CostTime,
    PairTime,
    Predicted,
    TileCase,
    TileMeasurements,
    Unmeasured,
    gain,
    predictions,
    read_tiles,
    whole_waves,
)
from gpusched_env.experiments.measure.tiles import MODEL
from gpusched_env.hardware.specs import load_gpu, match_gpu

V100_SMS = load_gpu("v100").sms
BESIDE = "tokens = {tokens} | policy = {by} | V100 = {v100:+z.1f} % | spin = {spin:+z.1f} % | product = {done:+z.1f} %"
NOTE_ON_BESIDE = (
    "Gains over stream order: published of cuSync's own products on a V100, and here, with the same grids on as many "
    "SMs. Where the V100 gained nothing and these do, waves and semaphores are not why."
)
CLEAR = 5.0
"""A gain or loss whose sign has to be right, per cent."""
GAINS = (
    "blocks = {blocks} | tokens = {tokens} | SMs = {sms} | waves = {waves} | policy = {policy} "
    "| measured us = {measured_us:.1f} | range = {range_us:.1f} | predicted us = {predicted_us:.1f} "
    "| measured gain = {measured:+z.1f} % | predicted gain = {predicted:+z.1f} % | error = {error:+z.1f} "
    "| if packed = {packed:+z.1f} %"
)


@dataclass(frozen=True)
class TilePage:
    """What is shown of a recording."""

    recording: TileMeasurements
    found: Sequence[Predicted]
    """The measured cases, simulated anew."""

    @property
    def gains(self) -> list[Predicted]:
        return [row for row in self.found if row.policy != STREAM]

    @property
    def headline(self) -> str:
        each = self.gains
        by_policy = ", ".join(
            f"by {policy}s {statistics.median(errors):.1f} points in the median and {max(errors):.1f} at most"
            for policy in POLICIES
            if (errors := [abs(row.error) for row in each if row.policy == policy])
        )
        return f"{len(each)} gains on an {self.recording.gpu} were predicted; errors are {by_policy}."

    @property
    def outcome(self) -> str:
        each = self.gains
        clear = [row for row in each if abs(row.measured) >= CLEAR]
        right = sum(row.measured * row.predicted > 0 for row in clear)
        packed = statistics.median(abs(row.packed - row.measured) for row in each)
        worst = max(each, key=lambda row: abs(row.error))
        guarded = [row for row in self.recording.of(PairTime) if row.policy in (STREAM, *POLICIES)]
        broken = sum(row.early > 0 or row.gave_up > 0 or row.right is False for row in guarded)
        return (
            f"Signs are right in {right} of the {len(clear)} pairs that gained or lost {CLEAR:g} % or more; if packed, "
            f"gains would be off by {packed:.1f} points in the median. The largest error is {worst.error:+.1f} points "
            f"({_blocks(worst.case)}, {worst.case.tokens:,} tokens, {worst.case.sms} SMs, by {worst.policy}s). Of "
            f"{len(guarded)} pairs in stream order or with semaphores {broken} read a tile too early{self._caught()}."
        )

    def _caught(self) -> str:
        """What came of the controls in which the consumer goes first and waits for nobody."""
        controls = [row for row in self.recording.of(PairTime) if row.policy == NOBODY_WAITS]
        caught = sum(row.early > 0 and row.right is not True for row in controls)
        also = f"; of {len(controls)} controls, whose consumer goes first and waits for nobody, {caught} did"
        return also if controls else ""

    @property
    def introduction(self) -> str:
        return about(__doc__)

    @property
    def tables(self) -> list[Table]:
        costs = [row for row in self.recording.rows if isinstance(row, CostTime)]
        left_out = self.recording.of(Unmeasured)
        cost = "a = {of} | us = {median_us:.3f} | least = {min_us:.3f} | most = {max_us:.3f}"
        first = [row for row in self.recording.of(PairTime) if row.policy == "row, consumer first"]
        return [
            table_of("Predicted and measured", list(self._rows()), GAINS, self._by_kind()),
            table_of("Beside a V100", list(self._beside_v100()), BESIDE, NOTE_ON_BESIDE),
            table_of("Costs", [_fields(row) for row in costs], cost, NOTE_ON_COSTS),
            table_of("Controls", list(self._controls()), CONTROLS, NOTE_ON_CONTROLS.format(first=_given_up(first))),
            table_of("Not measured", [_fields(row) for row in left_out], "case = {left_out} | why = {why}"),
        ]

    def _by_kind(self) -> str:
        """Median errors of each kind of case."""
        kinds: dict[str, list[float]] = {}
        for row in self.gains:
            kinds.setdefault(f"{_blocks(row.case)}, {row.case.sms} SMs", []).append(abs(row.error))
        each = "; ".join(f"{kind}: {statistics.median(errors):.1f}" for kind, errors in kinds.items())
        orders = [row.predicted_us / row.measured_us - 1.0 for row in self.found if row.policy == STREAM]
        return (
            f"Median errors, points: {each}. In stream order times are off by {max(map(abs, orders)):.1%} at most. "
            "*Waves*: of producer and consumer."
        )

    def _rows(self) -> Iterator[dict[str, object]]:
        ranges = {(row.case, row.policy): row.range_us for row in self.recording.of(PairTime)}
        for row in self.gains:
            first, second = whole_waves(row.case)
            yield {
                "blocks": _blocks(row.case), "tokens": f"{row.case.tokens:,}", "sms": row.case.sms,
                "waves": f"{first:.2f} + {second:.2f}", "policy": row.policy, "measured_us": row.measured_us,
                "range_us": ranges[row.case, row.policy], "predicted_us": row.predicted_us, "measured": row.measured,
                "predicted": row.predicted, "error": row.error, "packed": row.packed,
            }  # fmt: skip

    def _beside_v100(self) -> Iterator[dict[str, object]]:
        """Gains of cuSync's artifact, where a case has as many SMs and blocks as long."""
        found = {(row.case.work, row.case.tokens, row.policy): row for row in self.gains if row.case.sms == V100_SMS}
        for (work, tokens, policy), row in found.items():
            product = found.get(("product", tokens, policy))
            if work == "spin" and row.case.shorter == 1 and product is not None:
                published_row = published()["mlp"][MODEL][str(tokens)]
                yield {
                    "tokens": f"{tokens:,}", "by": policy, "spin": row.measured, "done": product.measured,
                    "v100": gain(published_row[f"{policy}_us"], sum(published_row["gemms"])),
                }  # fmt: skip

    def _controls(self) -> Iterator[dict[str, object]]:
        pairs = {(row.case, row.policy): row for row in self.recording.of(PairTime)}
        for (case, policy), row in pairs.items():
            beside = pairs.get((case, UNGUARDED))
            if policy == NOBODY_WAITS and beside is not None and (case, "row") in pairs:
                yield {
                    "blocks": _blocks(case), "tokens": f"{case.tokens:,}", "sms": case.sms, "early": f"{row.early:,}",
                    "result": RESULTS[row.right], "beside": f"{beside.early:,}", "then": RESULTS[beside.right],
                    "longer": 100.0 * (pairs[case, "row"].median_us / beside.median_us - 1.0),
                }  # fmt: skip


NOBODY_WAITS = f"{UNGUARDED}, consumer first"
RESULTS = {True: "right", False: "wrong", None: "none"}
CONTROLS = (
    "blocks = {blocks} | tokens = {tokens} | SMs = {sms} | steps too early = {early} | result = {result} "
    "| producer first: too early = {beside} | result = {then} | rows take longer by = {longer:+z.1f} %"
)
NOTE_ON_COSTS = "By how much a block on each SM takes longer, wave after wave, where there is nothing to wait for."
NOTE_ON_CONTROLS = (
    "Nobody waits: steps that read a tile before it had ended, in all repetitions, and whether the last result was "
    "right. "
    "The consumer goes first; beside it the usual order, producer first, in which the order of waves alone often is "
    "enough, and by how much rows of semaphores take longer than that. {first}"
)


def _given_up(rows: Sequence[PairTime]) -> str:
    """What is said of consumers that were launched before their producer."""
    return " ".join(
        f"A consumer that is launched before its producer takes all {row.case.sms * row.case.per_sm} slots and waits "
        f"for ever, here until {row.gave_up:,} waits were given up: a deadlock, which the simulator reports as one."
        for row in rows
    )


def _fields(row: CostTime | Unmeasured) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def _blocks(case: TileCase) -> str:
    """What the blocks of a case do."""
    shorter = f", 1/{case.shorter}" if case.shorter > 1 else ""
    return f"{case.work}{shorter}" + (f", {case.per_sm} an SM" if case.per_sm > 1 else "")


def tile_page(recording: TileMeasurements, device: str = "compiled") -> str:
    """The page, its predictions simulated anew.

    Raises:
        InputError: no pair was measured, or the GPU is unknown.
    """
    found = list(predictions(recording.rows, match_gpu(recording.gpu, "the recording"), device))
    if not any(row.policy != STREAM for row in found):
        raise InputError("the recording has no pair that was measured both in stream order and by a policy")
    return page("tiles.md.j2", text=TilePage(recording, found))


def shipped() -> Path:
    """The recording that comes with the package."""
    return Path(str(resources.files("gpusched_env.data") / "measurements" / "h100" / "tiles.json"))


def write_page(
    docs: Annotated[Path, typer.Option(metavar="PATH", help="Write the page there.")],
    json: Annotated[Path | None, typer.Option(metavar="PATH", help="A recording; by default the shipped one.")] = None,
) -> None:
    """Write the page of tiles that synchronise on a real GPU."""
    try:
        write_file(docs, tile_page(read_tiles(json or shipped())), "--docs")
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    typer.run(write_page)
