"""The networks of exported policies in compiled code: from an observation to one number an action.

Weights are one flat array in the order of :mod:`gpusched_env.agents.policies.sizes`, matrices transposed:
``(in, out)``. What is computed is said in torch in :mod:`gpusched_env.agents.policies.slots`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policies.knobs import knob_numbers
from gpusched_env.agents.policies.pairs import pair_numbers
from gpusched_env.agents.policies.release import release_numbers
from gpusched_env.agents.policies.rule import owner, rule_numbers
from gpusched_env.agents.policies.serve import ServeTerm, serve_numbers
from gpusched_env.agents.policies.sizes import (
    A_SLOT,
    COMMON_FEATURES,
    DEVICE_FEATURES,
    KERNEL_FEATURES,
    OWNER,
    PENDING_FEATURES,
    PENDING_OWNER,
    SLOT_FEATURES,
    TENANT_FEATURES,
    MemoryAt,
    WeightAt,
)
from gpusched_env.compiling import called, inlined, part
from gpusched_env.envs.encoding import COUNT_HALF, Bools
from gpusched_env.envs.features import DeviceFeature, PendingFeature, TenantFeature

Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

MLP = 0
SLOTS = 1
RULE = 2
RELEASE = 3
SERVE = 4
PAIRS = 5
KNOBS = 6
"""Kinds of networks, in entry 0 of ``sizes``. The other entries: of :data:`MLP` whether ReLU takes the place of tanh,
the tables' codes in the order of the inputs (4) and the widths of all layers; of :data:`SLOTS` launches (actions of a
pending slot), modes, quarters, rejections, width, heads, synchronisations and forms (of a pending slot) and the places
of :mod:`gpusched_env.agents.policies.sizes`; of :data:`RULE` the first three of these, and the stream priorities; of
:data:`RELEASE` the first; of :data:`SERVE` actions of a tenant; of :data:`PAIRS` launches, synchronisations, forms and
modes; of :data:`KNOBS` actions of a tenant: partitions, all before the pauses, pauses."""
FIRST_WIDTH = 6
"""Entry of ``sizes`` with the first width of an :data:`MLP`."""
RULE_PRIORITIES = 4
"""Entry of ``sizes`` with the first stream priority of a :data:`RULE`."""


@part(fastmath={"contract"})
def _add(weights: Singles, at: int, x: Singles, x_at: int, inputs: int, y: Singles, y_at: int, outputs: int) -> int:
    """Add ``x W`` to ``y``; returns where the weights after ``W`` begin."""
    # In slices of their own, indices are known not to be negative, and the inner loops become vector instructions.
    source = x[x_at : x_at + inputs]
    target = y[y_at : y_at + outputs]
    matrix = weights[at : at + inputs * outputs].reshape((inputs, outputs))
    fours = inputs // 4
    for four in range(fours):
        i = 4 * four
        a, b, c, d = source[i], source[i + 1], source[i + 2], source[i + 3]
        for j in range(outputs):
            target[j] += (a * matrix[i, j] + b * matrix[i + 1, j]) + (c * matrix[i + 2, j] + d * matrix[i + 3, j])
    for i in range(4 * fours, inputs):
        a = source[i]
        for j in range(outputs):
            target[j] += a * matrix[i, j]
    return at + inputs * outputs


@called
def _set(weights: Singles, at: int, y: Singles, y_at: int, outputs: int) -> int:
    """Set ``y`` to a bias; returns where the weights after it begin."""
    for j in range(outputs):
        y[y_at + j] = weights[at + j]
    return at + outputs


@called
def _mlp(
    sizes: Ints,
    weights: Singles,
    pending: Singles,
    running: Singles,
    tenants: Singles,
    device: Singles,
    scratch: Singles,
    out: Singles,
) -> None:
    filled = 0
    for code in sizes[2:FIRST_WIDTH]:
        if code == 3:
            for value in device:
                scratch[filled] = value
                filled += 1
        else:
            table = pending if code == 0 else (running if code == 1 else tenants)
            for row in range(table.shape[0]):
                for column in range(table.shape[1]):
                    scratch[filled] = table[row, column]
                    filled += 1
    at = 0
    x_at = 0
    for layer in range(FIRST_WIDTH, sizes.size - 1):
        inputs = sizes[layer]
        outputs = sizes[layer + 1]
        last = layer + 2 == sizes.size
        y = out if last else scratch
        y_at = 0 if last else x_at + inputs
        _set(weights, at + inputs * outputs, y, y_at, outputs)
        at = _add(weights, at, scratch, x_at, inputs, y, y_at, outputs) + outputs
        if not last:
            for j in range(y_at, y_at + outputs):
                y[j] = max(y[j], np.float32(0.0)) if sizes[1] == 1 else math.tanh(y[j])
        x_at = y_at


@called
def _present(pending: Singles, tenants: Singles, slot: int, lookahead: int) -> bool:
    """Whether a pending slot has a token: a launch stands in it, or it is a tenant's first."""
    row = tenants[slot // lookahead]
    idle = row[TenantFeature.EARNS] > 0.0 and row[TenantFeature.JOBS] == 0.0
    takes_part: bool = row[TenantFeature.PRESENT] > 0.5 and not idle
    return takes_part and (slot % lookahead == 0 or pending[slot, PendingFeature.PRESENT] > 0.5)


@inlined
def _work(sizes: Ints, table: int, slots: int) -> int:
    """Where a table of the slot network's working memory begins."""
    at: int = sizes[table] + slots * sizes[table + A_SLOT]
    return at


@part(fastmath={"contract", "reassoc", "nsz"})
def _slots(
    sizes: Ints,
    weights: Singles,
    pending: Singles,
    running: Singles,
    tenants: Singles,
    device: Singles,
    scratch: Singles,
    mask: Bools,
    everything: bool,
    out: Singles,
) -> None:
    _slot_rows(sizes, pending, running, tenants, device, scratch)
    _slot_tokens(sizes, weights, pending, tenants, scratch, everything)
    _attend(sizes, weights, pending, tenants, scratch)
    _tell(sizes, weights, pending.shape[0], scratch, out)
    kernels = running.shape[0]
    for slot in range(pending.shape[0]):
        if _is_needed(sizes, pending, tenants, kernels, slot, mask, everything):
            _score_slot(sizes, weights, pending.shape[0], kernels, tenants.shape[0], slot, scratch, out)
    if sizes[2] > 0:
        _score_kernels(sizes, weights, pending.shape[0], running, tenants.shape[0], scratch, out)


@part(fastmath={"contract", "reassoc", "nsz"})
def _slot_rows(
    sizes: Ints, pending: Singles, running: Singles, tenants: Singles, device: Singles, scratch: Singles
) -> None:
    """Write the rows of slots, and what is common to all."""
    slots = pending.shape[0]
    lookahead = slots // tenants.shape[0]
    rows, common = _work(sizes, MemoryAt.ROWS, slots), _work(sizes, MemoryAt.COMMON, slots)
    for i in range(_work(sizes, MemoryAt.SHARED, slots)):
        scratch[i] = np.float32(0.0)
    own = PENDING_FEATURES + TENANT_FEATURES
    for slot in range(slots):
        row = rows + slot * SLOT_FEATURES
        for column in range(PENDING_FEATURES):
            scratch[row + column] = pending[slot, column if column < PENDING_OWNER else column + 1]
        for column in range(TENANT_FEATURES):
            scratch[row + PENDING_FEATURES + column] = tenants[slot // lookahead, column]
    for column in range(DEVICE_FEATURES):
        scratch[common + column] = device[column]
    launchable = device[DeviceFeature.LAUNCHABLE] * np.float32(slots)
    scratch[common + DeviceFeature.LAUNCHABLE] = launchable / (launchable + np.float32(COUNT_HALF))
    for kernel in range(running.shape[0]):
        tenant = owner(running, kernel, tenants.shape[0])
        if tenant < 0:
            continue
        for column in range(KERNEL_FEATURES):
            value = running[kernel, column if column < OWNER else column + 1]
            for slot in range(tenant * lookahead, (tenant + 1) * lookahead):
                scratch[rows + slot * SLOT_FEATURES + own + column] += value
            scratch[common + DEVICE_FEATURES + column] += value


@part(fastmath={"contract", "reassoc", "nsz"})
def _slot_tokens(
    sizes: Ints, weights: Singles, pending: Singles, tenants: Singles, scratch: Singles, everything: bool
) -> None:
    """Write the tokens of slots, of all if ``everything``."""
    slots = pending.shape[0]
    lookahead = slots // tenants.shape[0]
    width = sizes[5]
    rows, common = _work(sizes, MemoryAt.ROWS, slots), _work(sizes, MemoryAt.COMMON, slots)
    shared, tokens = _work(sizes, MemoryAt.SHARED, slots), _work(sizes, MemoryAt.TOKENS, slots)
    _set(weights, sizes[WeightAt.ENCODER_SLOTS_BIAS], scratch, shared, width)
    _add(weights, sizes[WeightAt.ENCODER_COMMON_WEIGHT], scratch, common, COMMON_FEATURES, scratch, shared, width)
    for slot in range(slots):
        if everything or _present(pending, tenants, slot, lookahead):
            token = tokens + slot * width
            for j in range(width):
                scratch[token + j] = scratch[shared + j]
            encoder = sizes[WeightAt.ENCODER_SLOTS_WEIGHT]
            _add(weights, encoder, scratch, rows + slot * SLOT_FEATURES, SLOT_FEATURES, scratch, token, width)
            for j in range(token, token + width):
                scratch[j] = max(scratch[j], np.float32(0.0))


@part(fastmath={"contract", "reassoc", "nsz"})
def _attend(sizes: Ints, weights: Singles, pending: Singles, tenants: Singles, scratch: Singles) -> None:
    """Write for each head the mean of all tokens, weighted by attention."""
    slots = pending.shape[0]
    lookahead = slots // tenants.shape[0]
    width, heads = sizes[5], sizes[6]
    zero = np.float32(0.0)
    tokens, scores = _work(sizes, MemoryAt.TOKENS, slots), _work(sizes, MemoryAt.SCORES, slots)
    pooled = _work(sizes, MemoryAt.POOLED, slots)
    for i in range(scores, pooled + heads * width):
        scratch[i] = zero
    queries = sizes[WeightAt.POOL_QUERIES_WEIGHT]
    for slot in range(slots):
        if _present(pending, tenants, slot, lookahead):
            _add(weights, queries, scratch, tokens + slot * width, width, scratch, scores + slot * heads, heads)
    for head in range(heads):
        highest = np.float32(-np.inf)
        for slot in range(slots):
            if _present(pending, tenants, slot, lookahead):
                highest = max(highest, scratch[scores + slot * heads + head])
        total = zero
        for slot in range(slots):
            if _present(pending, tenants, slot, lookahead):
                weight = math.exp(scratch[scores + slot * heads + head] - highest)
                total += weight
                for j in range(width):
                    scratch[pooled + head * width + j] += weight * scratch[tokens + slot * width + j]
        for j in range(pooled + head * width, pooled + (head + 1) * width):
            scratch[j] /= max(total, np.float32(1e-30))


@part(fastmath={"contract", "reassoc", "nsz"})
def _tell(sizes: Ints, weights: Singles, slots: int, scratch: Singles, out: Singles) -> None:
    """Write what slots are told, and the number of the wait."""
    width, heads = sizes[5], sizes[6]
    pooled, told = _work(sizes, MemoryAt.POOLED, slots), _work(sizes, MemoryAt.TOLD, slots)
    mixed = _work(sizes, MemoryAt.MIXED, slots)
    _set(weights, sizes[WeightAt.MIX_BIAS], scratch, told, width)
    _add(weights, sizes[WeightAt.TELL_WEIGHT], scratch, pooled, heads * width, scratch, told, width)
    _set(weights, sizes[WeightAt.WEIGH_BIAS], scratch, mixed, width)
    _add(weights, sizes[WeightAt.WEIGH_WEIGHT], scratch, pooled, heads * width, scratch, mixed, width)
    wait = sizes[WeightAt.WAIT_WEIGHT]
    out[0] = weights[sizes[WeightAt.WAIT_BIAS]]
    for j in range(width):
        out[0] += max(scratch[mixed + j], np.float32(0.0)) * weights[wait + j]


@called
def _is_needed(
    sizes: Ints, pending: Singles, tenants: Singles, kernels: int, slot: int, mask: Bools, everything: bool
) -> bool:
    """Whether any number that is computed from a slot's token is asked for, and the slot has a token."""
    slots = pending.shape[0]
    lookahead = slots // tenants.shape[0]
    launches, modes, quarters, rejections = sizes[1], sizes[2], sizes[3], sizes[4]
    if not (everything or _present(pending, tenants, slot, lookahead)):
        return False
    needed: bool = everything
    for action in range(1 + slot * launches, 1 + (slot + 1) * launches):
        needed = needed or mask[action]
    synchronisations, forms = sizes[7], sizes[8]
    first_synchronisation = mask.size - (slots - slot) * synchronisations
    for action in range(first_synchronisation, first_synchronisation + synchronisations):
        needed = needed or mask[action]
    first_form = mask.size - slots * synchronisations - (slots - slot) * forms
    for action in range(first_form, first_form + forms):
        needed = needed or mask[action]
    if slot % lookahead == 0:
        tenant = slot // lookahead
        first_partition = 1 + slots * launches + kernels * modes
        first_rejection = first_partition + tenants.shape[0] * quarters
        needed = needed or modes > 0
        for action in range(first_partition + tenant * quarters, first_partition + (tenant + 1) * quarters):
            needed = needed or mask[action]
        for action in range(first_rejection + tenant * rejections, first_rejection + (tenant + 1) * rejections):
            needed = needed or mask[action]
    return needed


@part(fastmath={"contract", "reassoc", "nsz"})
def _score_slot(
    sizes: Ints, weights: Singles, slots: int, kernels: int, tenants: int, slot: int, scratch: Singles, out: Singles
) -> None:
    """Write the numbers of a slot's launches; a tenant's first token stands for the tenant's other actions too."""
    launches, modes, quarters, rejections, width = sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]
    lookahead = slots // tenants
    told, mixed = _work(sizes, MemoryAt.TOLD, slots), _work(sizes, MemoryAt.MIXED, slots)
    token = _work(sizes, MemoryAt.TOKENS, slots) + slot * width
    for j in range(width):
        scratch[mixed + j] = scratch[told + j]
    _add(weights, sizes[WeightAt.MIX_WEIGHT], scratch, token, width, scratch, mixed, width)
    for j in range(width):
        scratch[token + j] += max(scratch[mixed + j], np.float32(0.0))
    _set(weights, sizes[WeightAt.LAUNCH_BIAS], out, 1 + slot * launches, launches)
    _add(weights, sizes[WeightAt.LAUNCH_WEIGHT], scratch, token, width, out, 1 + slot * launches, launches)
    synchronisations, forms = sizes[7], sizes[8]
    if forms > 0:
        # They are the last actions but those.
        first = out.size - slots * synchronisations - (slots - slot) * forms
        _set(weights, sizes[WeightAt.RESHAPE_BIAS], out, first, forms)
        _add(weights, sizes[WeightAt.RESHAPE_WEIGHT], scratch, token, width, out, first, forms)
    if synchronisations > 0:
        # They are the last actions.
        first = out.size - (slots - slot) * synchronisations
        _set(weights, sizes[WeightAt.SYNCHRONISE_BIAS], out, first, synchronisations)
        synchronise = sizes[WeightAt.SYNCHRONISE_WEIGHT]
        _add(weights, synchronise, scratch, token, width, out, first, synchronisations)
    if slot % lookahead != 0:
        return
    first_partition = 1 + slots * launches + kernels * modes
    if quarters > 0:
        partition = first_partition + slot // lookahead * quarters
        _set(weights, sizes[WeightAt.PARTITION_BIAS], out, partition, quarters)
        _add(weights, sizes[WeightAt.PARTITION_WEIGHT], scratch, token, width, out, partition, quarters)
    if rejections > 0:
        rejection = first_partition + tenants * quarters + slot // lookahead * rejections
        _set(weights, sizes[WeightAt.REJECT_BIAS], out, rejection, rejections)
        _add(weights, sizes[WeightAt.REJECT_WEIGHT], scratch, token, width, out, rejection, rejections)


@part(fastmath={"contract", "reassoc", "nsz"})
def _score_kernels(
    sizes: Ints, weights: Singles, slots: int, running: Singles, tenants: int, scratch: Singles, out: Singles
) -> None:
    """Write the numbers of preemptions."""
    launches, modes, width = sizes[1], sizes[2], sizes[5]
    tokens, common = _work(sizes, MemoryAt.TOKENS, slots), _work(sizes, MemoryAt.COMMON, slots)
    mixed = _work(sizes, MemoryAt.MIXED, slots)
    for kernel in range(running.shape[0]):
        tenant = owner(running, kernel, tenants)
        # An empty row is a row of zeros that nobody owns.
        _set(weights, sizes[WeightAt.JOIN_BIAS], scratch, mixed, width)
        if tenant >= 0:
            for column in range(KERNEL_FEATURES):
                scratch[common + column] = running[kernel, column if column < OWNER else column + 1]
            token = tokens + tenant * (slots // tenants) * width
            after = _add(weights, sizes[WeightAt.JOIN_WEIGHT], scratch, common, KERNEL_FEATURES, scratch, mixed, width)
            _add(weights, after, scratch, token, width, scratch, mixed, width)
        for j in range(mixed, mixed + width):
            scratch[j] = max(scratch[j], np.float32(0.0))
        action = 1 + slots * launches + kernel * modes
        _set(weights, sizes[WeightAt.PREEMPT_BIAS], out, action, modes)
        _add(weights, sizes[WeightAt.PREEMPT_WEIGHT], scratch, mixed, width, out, action, modes)


@called
def numbers_of(
    sizes: Ints,
    weights: Singles,
    pending: Singles,
    running: Singles,
    tenants: Singles,
    device: Singles,
    scratch: Singles,
    mask: Bools,
    everything: bool,
    out: Singles,
) -> None:
    """Write one number an action.

    Args:
        sizes, weights: of the network.
        pending, running, tenants, device: the observation.
        scratch: as much as :func:`scratch_size` says.
        mask: legal actions.
        everything: whether numbers of illegal actions are needed too; otherwise some are left as they are.
        out: written, one number an action.
    """
    if sizes[0] == MLP:
        _mlp(sizes, weights, pending, running, tenants, device, scratch, out)
    elif sizes[0] == RULE:
        first_partition = 1 + pending.shape[0] * sizes[1] + running.shape[0] * sizes[2]
        rule_numbers(
            sizes[RULE_PRIORITIES:], sizes[1], sizes[3], first_partition, weights, pending, running, tenants, mask, out
        )  # fmt: skip
    elif sizes[0] == RELEASE:
        release_numbers(sizes[1], weights, pending, tenants.shape[0], out)
    elif sizes[0] == SERVE:
        serve_numbers(sizes[1], weights, tenants, scratch, out)
    elif sizes[0] == PAIRS:
        pair_numbers(sizes[1:], weights, pending, running, tenants, out)
    elif sizes[0] == KNOBS:
        knob_numbers(sizes[1], sizes[2], sizes[3], weights, tenants, mask, out)
    else:
        _slots(sizes, weights, pending, running, tenants, device, scratch, mask, everything, out)


def scratch_size(sizes: Ints, slots: int) -> int:
    """Entries of ``scratch`` that a network needs for observations with ``slots`` pending rows."""
    if sizes[0] == MLP:
        return int(sizes[FIRST_WIDTH:-1].sum())
    if sizes[0] in (RULE, RELEASE, PAIRS, KNOBS):
        return 0
    if sizes[0] == SERVE:
        return len(ServeTerm)
    return int(sizes[MemoryAt.END] + slots * sizes[MemoryAt.END + A_SLOT])
