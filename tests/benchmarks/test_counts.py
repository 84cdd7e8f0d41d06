"""Counts of what is done: none is a tenth greater than in the last release."""

from __future__ import annotations

import pytest

from gpusched_env.experiments.benchmarks import counts


def test_what_is_worse_is_said() -> None:
    before = {"events": 100.0, "calls": 0.0, "bytes": 5.0}
    assert counts.worse({"events": 110.0, "calls": 0.0, "bytes": 1.0}, before) == []
    assert counts.worse({"events": 111.0, "calls": 1.0, "files": 2.0}, before) == [
        "events: 111, was 100",
        "calls: 1, was 0",
        "files: 2, not known before",
    ]
    shown = [row[-1] for row in counts.table({"events": 110.0, "calls": 1.0}, before).rows]
    assert shown == ["+10.0%", ""]


@pytest.mark.long
@pytest.mark.parametrize("group", counts.GROUPS)
def test_no_count_is_a_tenth_worse(group: str) -> None:
    """After a change that is worth it: ``gpusched lab bench --counts --write``."""
    assert counts.worse(counts.GROUPS[group](), counts.known()) == []
