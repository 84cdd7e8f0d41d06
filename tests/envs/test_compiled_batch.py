"""Encoder and mask as a batched device calls them: from compiled code, on one environment's part of each array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.encoding import encode
from gpusched_env.envs.extra_columns import encode_forms, encode_gains
from gpusched_env.envs.features import TABLES
from gpusched_env.envs.numbering import fill_mask, slice_layout_of, write_meaning
from gpusched_env.envs.observations import ObservationEncoder, scalars
from gpusched_env.planning.tiles import SCRATCH
from gpusched_env.scenarios.tenant_program import Stream
from gpusched_env.scheduling.legality import COMMAND_RECORD, write_numbers
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

LAYOUT = ActionLayout(
    4,
    5,
    (0, -1),
    ("drain", "save-part"),
    (1, 2),
    lookahead=2,
    streams=1,
    rejects=True,
    synchronises=True,
    reshapes=True,
)
SMS = 132


@njit
def observe(
    pending: Any,
    running: Any,
    tenants: Any,
    in_use: Any,
    values: Any,
    slices: Any,
    choices: Any,
    out: Any,
    masks: Any,
    meanings: Any,
    scratch: Any,
) -> None:
    for e in range(masks.shape[0]):
        table = tenants[e, : in_use[e]]
        encode(pending[e], running[e], table, values[e], out[0][e], out[1][e], out[2][e], out[3][e])
        encode_gains(pending[e], SMS, scratch, out[0][e])
        encode_forms(pending[e], SMS, scratch, out[0][e])
        fill_mask(slices, choices, pending[e], running[e], table, table[:0], SMS, masks[e])
        for action in range(masks.shape[1]):
            meaning = meanings[e, action]
            meaning.code = write_meaning(
                slices, choices, pending[e], running[e], table, table[:0], SMS, 7, action, meaning
            )


def test_a_batch_gets_what_single_views_get(random_view: Callable[[int, int], View]) -> None:
    views = [random_view(seed, 4) for seed in range(30)]
    count = len(views)
    encoder = ObservationEncoder.of(LAYOUT)
    # What no function may read is not a number: rows beyond the tenants in use, other columns of empty rows.
    pending = np.full((count, 8, len(PendingColumn)), np.nan)
    running = np.full((count, 5, len(RunningColumn)), np.nan)
    tenants = np.full((count, 4, len(TenantColumn)), np.nan)
    in_use = np.array([len(view.tenants) for view in views])
    running[:, :, RunningColumn.ID] = -1
    pending[:, :, PendingColumn.ID] = -1
    for e, view in enumerate(views):
        shown = LAYOUT.select(view)
        tenants[e, : in_use[e]] = view.tenants.array
        for table, rows in ((pending[e], shown.pending), (running[e], shown.running)):
            present = rows[:, 0] >= 0
            table[present] = rows[present]
    out = (
        np.full((count, 8, len(TABLES["pending"])), np.nan, np.float32),
        np.full((count, 5, len(TABLES["running"])), np.nan, np.float32),
        np.full((count, 4, len(TABLES["tenants"])), np.nan, np.float32),
        np.full((count, len(TABLES["device"])), np.nan, np.float32),
    )
    masks = np.zeros((count, LAYOUT.n), np.bool_)
    values = np.array([scalars(view) for view in views])
    laid = slice_layout_of(LAYOUT)
    meanings = np.zeros((count, LAYOUT.n), COMMAND_RECORD)
    observe(pending, running, tenants, in_use, values, laid.rows, laid.choices, out, masks, meanings, np.zeros(SCRATCH))
    streams = (*[Stream(0, 0)] * 7, Stream(-1, 0))
    for e, view in enumerate(views):
        np.testing.assert_array_equal(masks[e], LAYOUT.mask(view))
        for action in np.flatnonzero(masks[e])[1:].tolist():
            command = LAYOUT.decode(action, view, wait_us=1.0, streams=streams)
            given = np.zeros(1, COMMAND_RECORD)
            write_numbers(command, given.view(np.int64))
            assert meanings[e, action] == given[0]
        for table, (name, expected) in zip(out, encoder.encode(view).items(), strict=True):
            np.testing.assert_array_equal(table[e], expected, err_msg=name)
