"""Tables whose memory is used again: only once nobody holds it."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.envs.observations import KEPT, Recycled

SHAPES = {"pending": (3, 2, 4), "device": (3, 5)}


def test_tables_have_their_shapes_and_lie_apart() -> None:
    tables = Recycled(SHAPES).tables()
    assert {name: table.shape for name, table in tables.items()} == SHAPES
    assert all(table.dtype == np.float32 and table.flags.c_contiguous for table in tables.values())
    assert not np.shares_memory(tables["pending"], tables["device"])


def test_memory_is_not_used_again_while_a_table_or_a_view_of_one_is_held() -> None:
    recycled = Recycled(SHAPES)
    held = [recycled.tables()["pending"][1:, 0] for _ in range(2 * KEPT)]
    for number, view in enumerate(held):
        view[:] = number
    recycled.tables()["pending"][:] = -1.0
    assert [float(view[0, 0]) for view in held] == list(range(2 * KEPT))


def test_memory_is_used_again_when_its_tables_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    empty = np.empty
    monkeypatch.setattr(np, "empty", lambda *shape: made.append(shape) or empty(*shape))
    recycled = Recycled(SHAPES)
    for _ in range(5):
        last = recycled.tables()
    assert last.keys() == SHAPES.keys()
    assert len(made) == 2, "one set is held while the next one is made"
