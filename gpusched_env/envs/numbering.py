"""What the numbers of a flat action space mean, and which are legal: compiled, pure, for any slices."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called
from gpusched_env.envs.action_fields import ActionFields
from gpusched_env.envs.encoding import Bools, Floats
from gpusched_env.envs.slices import SLICE_CODES, SLICES, SLOT_KINDS, Slice, legal, means, shows
from gpusched_env.scheduling.commands import NOTHING, WAITING

Ints = NDArray[np.int64]

# Columns of :attr:`SliceLayout.rows`.
CODE: Final = 0
FIRST: Final = 1
SLOTS: Final = 2
CHOICES: Final = 3
AT: Final = 4
TABLE: Final = 5


@dataclass(frozen=True, slots=True)
class SliceLayout:
    """Where each slice of an action space lies."""

    slices: tuple[Slice, ...]
    """Slices with actions."""
    rows: Ints
    """One a slice: code of the command, first action, slots, choices of a slot, row of its first choice, and which of
    :data:`~gpusched_env.envs.slices.SLOT_KINDS` its slots are."""
    choices: Ints
    """Pairs ``a, b``, the choices of all slices one behind another."""
    n: int
    """Number of actions."""


@functools.cache
def slice_layout_of(layout: ActionFields) -> SliceLayout:
    """The slices of a layout; the arrays are shared and must not be written to."""
    slots: dict[str, int] = {
        "pending": layout.pending_slots,
        "running": layout.running_slots,
        "tenant": layout.slots,
        "core": layout.core_slots,
    }
    slices, rows, n = [], [], 1
    pairs: list[tuple[int, int]] = []
    for each in SLICES:
        choices = each.choices(layout)
        if choices:
            slices.append(each)
            rows.append(
                (
                    SLICE_CODES[each.command],
                    n,
                    slots[each.slots],
                    len(choices),
                    len(pairs),
                    SLOT_KINDS.index(each.slots),
                )
            )
            n += slots[each.slots] * len(choices)
            pairs += choices
    return SliceLayout(
        tuple(slices), np.array(rows, np.int64).reshape(-1, 6), np.array(pairs, np.int64).reshape(-1, 2), n
    )


@cached()
def fill_mask(
    rows: Ints,
    choices: Ints,
    pending_shown: Floats,
    running_shown: Floats,
    tenants: Floats,
    cores: Floats,
    sms: int,
    out: Bools,
) -> None:
    """Write which actions are legal: those whose command a device would accept, no job twice, and nothing by which a
    consumer of tiles could take the slots that its producer needs.

    Args:
        rows, choices: of a :class:`SliceLayout`.
        pending_shown: float64, shape ``(pending slots, len(PendingColumn))``, as for
            :func:`~gpusched_env.envs.encoding.encode`.
        running_shown: float64, shape ``(running_slots, len(RunningColumn))``, likewise.
        tenants: a View's table, float64; tenant slots beyond its rows are empty.
        cores: likewise.
        sms: SMs of the GPU.
        out: written, shape ``(actions,)``.
    """
    out[0] = True
    for s in range(rows.shape[0]):
        code, action = rows[s, CODE], rows[s, FIRST]
        for slot in range(rows[s, SLOTS]):
            is_shown = shows(code, pending_shown, running_shown, tenants, cores, slot)
            for choice in range(rows[s, AT], rows[s, AT] + rows[s, CHOICES]):
                a, b = choices[choice, 0], choices[choice, 1]
                out[action] = is_shown and legal(code, pending_shown, running_shown, tenants, cores, sms, 0, slot, a, b)
                action += 1


@called
def part_of(rows, choices, action):
    """Row of an action's slice (-1: none), its slot, and its choice ``a``, ``b``."""
    for s in range(rows.shape[0]):
        behind = action - rows[s, FIRST]
        if 0 <= behind < rows[s, SLOTS] * rows[s, CHOICES]:
            choice = rows[s, AT] + behind % rows[s, CHOICES]
            return s, behind // rows[s, CHOICES], choices[choice, 0], choices[choice, 1]
    return -1, -1, 0, 0


@cached()
def write_meaning(
    rows: Ints,
    choices: Ints,
    pending_shown: Floats,
    running_shown: Floats,
    tenants: Floats,
    cores: Floats,
    sms: int,
    own: int,
    action: int,
    given: Any,
) -> Any:
    """Write the numbers of the command that an action means; returns its code, -1: the slot is empty.

    Args:
        rows, choices, pending_shown, running_shown, tenants, cores, sms: as for :func:`fill_mask`.
        own: row of the first of the scheduler's own streams.
        action: 0, of which no number is written, or an action of a slice.
        given: a :data:`~gpusched_env.scheduling.legality.COMMAND_RECORD`, without its code.
    """
    s, slot, a, b = part_of(rows, choices, action)
    if s < 0:
        return WAITING
    code = rows[s, CODE]
    if not shows(code, pending_shown, running_shown, tenants, cores, slot):
        return NOTHING
    means(code, pending_shown, running_shown, tenants, cores, sms, own, slot, a, b, given)
    return code


@cached()
def action_of_command(
    rows: Ints,
    choices: Ints,
    pending_shown: Floats,
    running_shown: Floats,
    tenants: Floats,
    cores: Floats,
    sms: int,
    own: int,
    given: Any,
    words: Ints,
) -> int:
    """The first action that means a command; -1 if none does. Arguments as for :func:`write_meaning`, and

    Args:
        given: two records: the command, with 0 for what are no numbers of it; and one to write.
        words: the same memory, a line each.
    """
    for s in range(rows.shape[0]):
        if rows[s, CODE] == words[0, 0]:
            for action in range(rows[s, FIRST], rows[s, FIRST] + rows[s, SLOTS] * rows[s, CHOICES]):
                words[1, :] = 0
                words[1, 0] = write_meaning(
                    rows, choices, pending_shown, running_shown, tenants, cores, sms, own, action, given[1]
                )
                if equal_rows(words):
                    return action
    return -1


@called
def equal_rows(words):
    """Whether two rows of words are equal."""
    for number in range(words.shape[1]):  # noqa: SIM110 (Numba has no all() over generators)
        if words[0, number] != words[1, number]:
            return False
    return True
