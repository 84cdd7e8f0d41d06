"""What the networks of policies are made of, and where their arrays begin: plain data, the same for torch and for
compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum, auto
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
from msgspec import Meta

from gpusched_env.agents.policies import knobs, pairs, release, rule, serve
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.features import TABLES, DeviceFeature, PendingFeature, RunningFeature, TenantFeature
from gpusched_env.errors import InputError

Count = Annotated[int, Meta(ge=0)]
Width = Annotated[int, Meta(ge=1)]
Shapes = dict[str, tuple[int, ...]]
"""Arrays of weights by name, in the order in which compiled code reads them."""

OWNER = int(RunningFeature.TENANT)
PENDING_OWNER = int(PendingFeature.TENANT)
"""The columns of ``running`` and ``pending`` that tell whose a launch is; the others describe it."""
PENDING_FEATURES = len(PendingFeature) - 1
TENANT_FEATURES = len(TenantFeature)
DEVICE_FEATURES = len(DeviceFeature)
KERNEL_FEATURES = len(RunningFeature) - 1
SLOT_FEATURES = PENDING_FEATURES + TENANT_FEATURES + KERNEL_FEATURES
"""What the token of a pending slot is made of: its row of ``pending``, its tenant's of ``tenants``, and the sum of its
tenant's rows of ``running``."""
COMMON_FEATURES = DEVICE_FEATURES + KERNEL_FEATURES
"""What all tokens share: ``device`` and the sum of all rows of ``running``."""


class MlpSizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="mlp", tag_field="kind"):
    """Sizes of a network of layers on all columns in a row."""

    inputs: tuple[Literal["pending", "running", "tenants", "device"], ...]
    """Tables in the order in which they are flattened."""
    widths: tuple[Width, ...]
    """Widths of the hidden layers."""
    activation: Literal["tanh", "relu"]

    def fitted(self, layout: ActionLayout) -> MlpSizes:
        """These sizes, the same for every layout: the first and the last layer follow from it."""
        return self

    def shapes(self, layout: ActionLayout) -> Shapes:
        """Weights ``(out, in)`` and biases of each layer."""
        widths = (input_width(layout), *self.widths, layout.n)
        found: Shapes = {}
        for number in range(len(widths) - 1):
            found[f"{number}.weight"] = (widths[number + 1], widths[number])
            found[f"{number}.bias"] = (widths[number + 1],)
        return found


SLOT_COMMANDS = ("serve", "launch", "preempt", "partition", "reject", "reshape", "synchronise")
"""Commands that the slot network has outputs for; waiting has one, too."""


class SlotSizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="slots", tag_field="kind"):
    """Sizes of the slot network (:mod:`gpusched_env.agents.policies.slots`)."""

    priorities: Count
    """Stream priorities that a launch chooses from; 0 where decisions stand for an interval."""
    streams: Count = 0
    """Streams of the scheduler's own that it chooses from, besides its program's."""
    modes: Count = 0
    """Ways of preempting a kernel."""
    quarters: Count = 0
    """Sizes of partitions that a tenant can be given."""
    rejections: Count = 0
    """Jobs of a tenant that can be rejected."""
    synchronisations: Count = 0
    """Ways of synchronising the tiles of what stands in a pending slot."""
    forms: Count = 0
    """Forms that what stands in a pending slot can be given."""
    serves: Count = 0
    """Ways of letting a tenant go first, where decisions stand for an interval; then nothing is launched by action."""
    width: Width = 48
    """Width of a token."""
    heads: Width = 2
    """Heads of the attention."""

    @classmethod
    def of(cls, layout: ActionLayout) -> SlotSizes:
        """The sizes that fit a layout's actions.

        Raises:
            InputError: the layout has commands that this network has no outputs for.
        """
        without = [name for name, _ in layout.parts() if name not in SLOT_COMMANDS]
        if without:
            raise InputError(
                f"a network of pending slots has no outputs for {' and '.join(without)}, which the scenario offers: "
                "take policy mlp, or a scenario without"
            )
        return cls(
            priorities=len(layout.stream_priorities),
            streams=layout.streams,
            modes=layout.choices("preempt"),
            quarters=layout.choices("partition"),
            rejections=layout.choices("reject"),
            synchronisations=layout.choices("synchronise"),
            forms=layout.choices("reshape"),
            serves=layout.choices("serve"),
        )

    def fitted(self, layout: ActionLayout) -> SlotSizes:
        """The sizes with these widths, and with the numbers of choices that a layout offers."""
        return msgspec.structs.replace(self.of(layout), width=self.width, heads=self.heads)

    @property
    def launches(self) -> int:
        """Actions that launch what stands in a pending slot, or let its tenant go first."""
        return self.serves or self.priorities * (1 + self.streams)

    def as_dict(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)

    def shapes(self, layout: ActionLayout) -> Shapes:
        """Weights ``(out, in)`` and biases of the actor; ``layout`` has no part in them."""
        width = self.width
        found: Shapes = {
            "encoder.slots.weight": (width, SLOT_FEATURES),
            "encoder.slots.bias": (width,),
            "encoder.common.weight": (width, COMMON_FEATURES),
            "pool.queries.weight": (self.heads, width),
            "tell.weight": (width, self.heads * width),
            "mix.weight": (width, width),
            "mix.bias": (width,),
            "weigh.weight": (width, self.heads * width),
            "weigh.bias": (width,),
            "wait.weight": (1, width),
            "wait.bias": (1,),
            "launch.weight": (self.launches, width),
            "launch.bias": (self.launches,),
        }
        if self.modes:
            found |= {
                "join.weight": (width, KERNEL_FEATURES + width),
                "join.bias": (width,),
                "preempt.weight": (self.modes, width),
                "preempt.bias": (self.modes,),
            }
        if self.quarters:
            found |= {"partition.weight": (self.quarters, width), "partition.bias": (self.quarters,)}
        if self.rejections:
            found |= {"reject.weight": (self.rejections, width), "reject.bias": (self.rejections,)}
        if self.forms:
            found |= {"reshape.weight": (self.forms, width), "reshape.bias": (self.forms,)}
        if self.synchronisations:
            ways = self.synchronisations
            found |= {"synchronise.weight": (ways, width), "synchronise.bias": (ways,)}
        return found


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A rule: linear functions of columns of an observation."""

    RULE: ClassVar[Any]
    """The module of :mod:`gpusched_env.agents.policies` that says what it is, by ``READS`` and ``SHAPES``."""

    @classmethod
    def check(cls, layout: ActionLayout) -> None:
        """Check that decisions are of the kind that the rule makes; most rules decide about launches.

        Raises:
            InputError: they are not.
        """
        if layout.interval_us > 0.0:
            name = cls.__struct_config__.tag
            raise InputError(f"policy {name} decides about launches, not for an interval: give interval_us 0, or serve")

    @classmethod
    def of(cls, layout: ActionLayout) -> Self:
        """The sizes that fit a layout's actions.

        Raises:
            InputError: as :meth:`check`.
        """
        cls.check(layout)
        return cls()

    def fitted(self, layout: ActionLayout) -> Self:
        """The sizes that fit a layout's actions, as :meth:`of` makes them."""
        return self.of(layout)

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """Columns of an observation that it reads, by table."""
        reads: dict[str, tuple[str, ...]] = self.RULE.READS
        return reads

    def shapes(self, layout: ActionLayout) -> Shapes:
        """Shapes of the weights, the same for every layout."""
        return dict(self.RULE.SHAPES)


class RuleSizes(RuleRecord, frozen=True, kw_only=True, tag="rule"):
    """Sizes of the rule (:mod:`gpusched_env.agents.policies.rule`)."""

    RULE: ClassVar[Any] = rule
    priorities: Count
    streams: Count = 0
    modes: Count = 0
    quarters: Count = 0
    """Choices as in :class:`SlotSizes`; the rule launches into its program's streams, preempts and rejects nothing."""

    @classmethod
    def of(cls, layout: ActionLayout) -> Self:
        """The sizes that fit a layout's actions, as :meth:`RuleRecord.of`."""
        cls.check(layout)
        return cls(
            priorities=len(layout.stream_priorities),
            streams=layout.streams,
            modes=layout.choices("preempt"),
            quarters=layout.choices("partition"),
        )


class ReleaseSizes(RuleRecord, frozen=True, tag="release"):
    """Sizes of the release rule (:mod:`gpusched_env.agents.policies.release`)."""

    RULE: ClassVar[Any] = release


class ServeSizes(RuleRecord, frozen=True, kw_only=True, tag="serve"):
    """Sizes of the serve rule (:mod:`gpusched_env.agents.policies.serve`)."""

    RULE: ClassVar[Any] = serve
    ways: Annotated[int, Meta(ge=2, le=len(serve.Way))] = 2
    """How many ways of letting a tenant go first it has: the first ones of ``serve.Way``."""

    @classmethod
    def check(cls, layout: ActionLayout) -> None:
        """Check that decisions stand for an interval, and that observations tell what is lost in futures."""
        if layout.interval_us == 0.0:
            raise InputError("policy serve decides for an interval: give interval_us (such as 250)")
        if not layout.futures:
            raise InputError("policy serve goes by what is lost in futures: give futures true")

    @classmethod
    def of(cls, layout: ActionLayout) -> Self:
        """The sizes that fit a layout's actions, as :meth:`RuleRecord.of`, with all ways."""
        cls.check(layout)
        return cls(ways=len(serve.Way))

    def fitted(self, layout: ActionLayout) -> Self:
        """The sizes that fit a layout's actions, with as many ways as these have."""
        return msgspec.structs.replace(self.of(layout), ways=self.ways)

    def shapes(self, layout: ActionLayout) -> Shapes:
        """Shapes of the weights, the same for every layout."""
        return serve.shapes(self.ways)


class PairSizes(RuleRecord, frozen=True, tag="pairs"):
    """Sizes of the rule of pairs (:mod:`gpusched_env.agents.policies.pairs`)."""

    RULE: ClassVar[Any] = pairs

    @classmethod
    def check(cls, layout: ActionLayout) -> None:
        """Check that there are tiles to synchronise."""
        if not layout.synchronises:
            raise InputError("policy pairs synchronises tiles: give a scenario whose commands have synchronise")


class KnobSizes(RuleRecord, frozen=True, tag="knobs"):
    """Sizes of the knob rule (:mod:`gpusched_env.agents.policies.knobs`)."""

    RULE: ClassVar[Any] = knobs

    @classmethod
    def check(cls, layout: ActionLayout) -> None:
        """Check that decisions are about knobs."""
        if not layout.knobs:
            raise InputError(
                "policy knobs says how long tenants sleep: give a scenario with throttles among its commands, and "
                "interval_us"
            )


AnyRule = RuleSizes | ReleaseSizes | ServeSizes | PairSizes | KnobSizes
Sizes = MlpSizes | SlotSizes | AnyRule


def input_width(layout: ActionLayout) -> int:
    """Columns of all tables' rows in a row."""
    rows = {"pending": layout.pending_slots, "running": layout.running_slots, "tenants": layout.slots, "device": 1}
    return sum(rows[name] * len(features) for name, features in TABLES.items())


FIRST = 9
"""Entry of ``sizes`` (:mod:`gpusched_env.agents.network`) with the first place; before it are the sizes themselves."""


class WeightAt(IntEnum):
    """Entries of ``sizes`` with places in the weights, named as :meth:`SlotSizes.shapes` names the arrays.

    An array that a network does not have begins where the next one does.
    """

    ENCODER_SLOTS_WEIGHT = FIRST
    ENCODER_SLOTS_BIAS = auto()
    ENCODER_COMMON_WEIGHT = auto()
    POOL_QUERIES_WEIGHT = auto()
    TELL_WEIGHT = auto()
    MIX_WEIGHT = auto()
    MIX_BIAS = auto()
    WEIGH_WEIGHT = auto()
    WEIGH_BIAS = auto()
    WAIT_WEIGHT = auto()
    WAIT_BIAS = auto()
    LAUNCH_WEIGHT = auto()
    LAUNCH_BIAS = auto()
    JOIN_WEIGHT = auto()
    JOIN_BIAS = auto()
    PREEMPT_WEIGHT = auto()
    PREEMPT_BIAS = auto()
    PARTITION_WEIGHT = auto()
    PARTITION_BIAS = auto()
    REJECT_WEIGHT = auto()
    REJECT_BIAS = auto()
    RESHAPE_WEIGHT = auto()
    RESHAPE_BIAS = auto()
    SYNCHRONISE_WEIGHT = auto()
    SYNCHRONISE_BIAS = auto()


class MemoryAt(IntEnum):
    """Entries of ``sizes`` with places in the working memory without any slot; :data:`A_SLOT` after each, what a slot
    adds to it."""

    ROWS = FIRST + len(WeightAt)
    COMMON = auto()
    SHARED = auto()
    TOKENS = auto()
    SCORES = auto()
    POOLED = auto()
    TOLD = auto()
    MIXED = auto()
    END = auto()


A_SLOT = len(MemoryAt)


def work_shapes(width: int, heads: int, slots: int) -> Shapes:
    """Arrays of the working memory for ``slots`` pending slots, by name and in order."""
    return {
        "rows": (slots, SLOT_FEATURES),
        "common": (COMMON_FEATURES,),
        "shared": (width,),
        "tokens": (slots, width),
        "scores": (slots, heads),
        "pooled": (heads, width),
        "told": (width,),
        "mixed": (width,),
    }


def places(network: SlotSizes, layout: ActionLayout) -> list[int]:
    """The entries of ``sizes`` from :data:`FIRST` on; ``layout`` has no part in them."""
    found = _begins(network.shapes(layout), (place.name for place in WeightAt))
    none, one = (
        _begins(work_shapes(network.width, network.heads, slots), (table.name for table in MemoryAt))
        for slots in (0, 1)
    )
    return [*found, *none, *(after - before for before, after in zip(none, one, strict=True))]


def _begins(shapes: Shapes, names: Iterable[str]) -> list[int]:
    """Where arrays of ``names`` begin that lie one after the other in this order."""
    lengths = {name.replace(".", "_").upper(): math.prod(shape) for name, shape in shapes.items()}
    found = []
    at = 0
    for name in names:
        found.append(at)
        at += lengths.pop(name, 0)
    assert not lengths, f"arrays without a place: {', '.join(lengths)}"
    return found
