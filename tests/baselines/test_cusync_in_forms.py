"""cuSync in forms: which form is picked, and that pairs are then synchronised, or not. Hand-solved."""

from __future__ import annotations

from gpusched_env.baselines.cusync_in_forms import CuSyncInForms
from gpusched_env.baselines.cusync_search import CuSyncSearch
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from tests.devices.test_reshape import product
from tests.devices.test_tiles import blocks, waves
from tests.refusals import refused

SHORT, LONG = ((3, 2, 1), 10.0), ((4, 1, 1), 15.0)
"""Six tiles in two waves of 10 us, and four in one of 15."""


def played(built: Problem, scheduler: CuSyncInForms) -> Episode:
    return run_episode(scheduler, built, ReferenceDevice(), 0, record="blocks")


def test_it_takes_the_form_that_is_quickest_or_whose_blocks_are_short() -> None:
    """20 us in blocks of 10, or 15 in blocks of 15: 20 * 10 is less than 15 * 15."""
    for own, other in ((SHORT, LONG), (LONG, SHORT)):
        quickest, shortest = (played(product(own, other), CuSyncInForms(shorter=shorter)) for shorter in (0.0, 1.0))
        assert blocks(quickest) == waves(0, (range(4), 0, 15))
        assert blocks(shortest) == waves(0, (range(4), 0, 10), (range(2), 10, 20))


def test_pairs_are_synchronised_in_their_forms_or_stay_in_stream_order() -> None:
    """The producer's two tiles of 12 us on two SMs; its consumer waits beside it, or comes behind."""
    built = product(((2, 4, 1), 10.0), ((1, 2, 1), 12.0), consumer=(1, 2, 1))
    producer = waves(0, (range(2), 0, 12))
    assert blocks(played(built, CuSyncInForms("row"))) == producer + waves(1, (range(2, 4), 0, 22))
    assert blocks(played(built, CuSyncInForms("kernel"))) == producer + waves(1, (range(2), 12, 22))


def test_bad_options_are_refused() -> None:
    with refused(InputError, "least 0", "shorter"):
        CuSyncInForms(shorter=-1.0)
    with refused(InputError, "cusync-in-forms", "'none'"):
        CuSyncInForms("none")  # type: ignore[arg-type]


def test_the_search_finds_the_form_as_well() -> None:
    """The other form ends at 15 us, the own one at 20."""
    for own, other in ((SHORT, LONG), (LONG, SHORT)):
        found = run_episode(CuSyncSearch(), product(own, other), ReferenceDevice(), 0, record="blocks")
        assert blocks(found) == waves(0, (range(4), 0, 15))
