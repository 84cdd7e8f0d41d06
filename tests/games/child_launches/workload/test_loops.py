"""Join, Mandelbrot set, sparse matrix, mesh and alignment: counts of iterations against plain references."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.games.child_launches.workload.launches import LaunchRequests, Threads
from gpusched_env.games.child_launches.workload.planes import (
    Window,
    escape_iterations,
    ignite,
    random_front,
    refine,
    render,
)
from gpusched_env.games.child_launches.workload.tables import (
    Distribution,
    SparsePattern,
    Species,
    align,
    candidates,
    genome,
    hash_join,
    keys,
    multiply,
    random_join,
    random_pattern,
)


def requests_of(threads: Threads) -> LaunchRequests:
    assert threads.requests is not None
    return threads.requests


@pytest.mark.parametrize("distribution", ["uniform", "gaussian"])
def test_join_scans_as_many_tuples_as_match(distribution: Distribution) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    probing, building = (keys(distribution, tuples, 64, rng) for tuples in (500, 3000))
    left = pd.DataFrame({"key": probing, "row": np.arange(500)})
    matches = left.merge(pd.DataFrame({"key": building}), on="key").groupby("row").size().reindex(range(500))
    expected = matches.fillna(0).astype(int).tolist()
    (kernel,) = hash_join(probing, building, 64)
    assert kernel.threads.work.tolist() == expected
    sample, rest = hash_join(probing, building, 64, sampled=70)
    assert sample.threads.work.tolist() == expected[:70]
    assert rest.threads.work.tolist() == expected[70:]
    *_, shared = hash_join(probing, building, 64, sampled=70, tuples_a_thread=4)
    assert shared.threads.work.tolist() == [sum(expected[start::108]) for start in range(70, 178)]
    in_turn = [work for start in range(70, 178) for work in expected[start::108] if work]
    assert requests_of(shared.threads).work.tolist() == in_turn


def test_tuples_are_probed_in_the_order_of_their_keys() -> None:
    """Of normal keys the work then rises to the middle and falls; the sample is in no order."""
    sample, rest = random_join("gaussian", 8000, 1 << 16, 256, 2000, seed=0)
    outer, middle = rest.threads.work[:500], rest.threads.work[2750:3250]
    assert 2 * outer.max() < middle.min()
    assert sample.threads.work[:500].max() > 2 * outer.max()


def test_keys_have_their_distribution() -> None:
    rng = np.random.default_rng(0)
    uniform, gaussian = (keys(name, 100_000, 800, rng) for name in ("uniform", "gaussian"))
    assert uniform.std() == pytest.approx(800 / 12**0.5, rel=0.02)
    assert gaussian.std() == pytest.approx(100, rel=0.02)
    assert gaussian.mean() == pytest.approx(400, rel=0.02)


def naive_escape(c: complex, limit: int) -> int:
    z, count = 0j, 0
    while count < limit:
        z = z * z + c
        count += 1
        if abs(z) > 2:
            break
    return count


@pytest.mark.parametrize("limit", [1, 2, 17, 18, 60])
def test_escape_iterations_are_those_of_the_plain_loop(limit: int) -> None:
    side = np.linspace(-2.3, 2.3, 47)
    points = side + 1j * side[:, None]
    expected = [[naive_escape(c, limit) for c in row] for row in points.tolist()]
    assert escape_iterations(points, limit).tolist() == expected


def test_tiles_own_their_pixels() -> None:
    (kernel,) = render(Window(-0.5 + 0j, 3.0), 4, (2, 3), 50)
    requests = requests_of(kernel.threads)
    across, down = np.arange(12) / 12 - 0.5, np.arange(8) / 8 - 0.5
    image = escape_iterations(-0.5 + 3.0 * (across + 1j * down[:, None]), 50)
    expected = [image[2 * row : 2 * row + 2, 3 * column : 3 * column + 3] for row in range(4) for column in range(4)]
    assert requests.work.tolist() == [int(tile.sum()) for tile in expected]
    assert requests.children is not None
    assert requests.children.base[6:12].tolist() == expected[1].ravel().tolist()


def test_product_takes_the_multiply_adds_of_scipy() -> None:
    import scipy.sparse

    pattern = random_pattern(40, 30, 0.1, seed=1)
    matrix = scipy.sparse.csr_array((np.ones(pattern.column.size), pattern.column, pattern.first), shape=(40, 30))
    (kernel,) = multiply(pattern, 25)
    # With ones everywhere, an element of the product counts the multiply-adds that form it.
    product = matrix @ np.ones((30, 25))
    assert kernel.threads.work.tolist() == product.sum(axis=1).astype(int).tolist()
    requests = requests_of(kernel.threads)
    assert requests.iterations is not None
    for place, row in enumerate(requests.thread.tolist()):
        assert product[row].tolist() == [requests.iterations[place]] * requests.items[place]


def test_a_thread_forms_several_rows_and_has_work_of_its_own() -> None:
    """Rows of 2, 1, 0, 3 and 4 nonzeros times 30 columns, two a thread; a quarter of all is the thread's own."""
    pattern = SparsePattern(np.array([0, 2, 3, 3, 6, 10]), np.array([0, 1, 0, 0, 1, 2, 0, 1, 2, 3]))
    (kernel,) = multiply(pattern, 30, rows_a_thread=2, own_share=0.25)
    requests = requests_of(kernel.threads)
    assert requests.thread.tolist() == [0, 0, 1, 2]
    assert requests.work.tolist() == [60, 30, 90, 120]
    assert kernel.threads.base.tolist() == [30, 30, 40]


def test_nonzeros_have_their_density() -> None:
    pattern = random_pattern(500, 400, 0.1, seed=1)
    assert pattern.column.size / (500 * 400) == pytest.approx(0.1, rel=0.03)


def test_cells_refine_at_the_front_and_their_cells_again() -> None:
    front = random_front(0.25, seed=3)
    (kernel,) = refine([front], 12, 3, 2)

    def centres(x: float, y: float, width: float) -> list[tuple[float, float]]:
        return [(x + (i - 1) * width / 3, y + (j - 1) * width / 3) for j in range(3) for i in range(3)]

    def near(x: float, y: float, width: float) -> bool:
        return bool(abs(front.distance(np.array([x]), np.array([y]))[0]) < width / 2)

    def work(x: float, y: float, width: float, levels: int) -> int:
        if not levels or not near(x, y, width):
            return 1
        return 1 + sum(work(a, b, width / 3, levels - 1) for a, b in centres(x, y, width))

    cells = [((i + 0.5) / 12, (j + 0.5) / 12) for j in range(12) for i in range(12)]
    assert kernel.threads.work.tolist() == [work(x, y, 1 / 12, 2) for x, y in cells]
    requests = requests_of(kernel.threads)
    assert requests.children is not None
    inner = requests_of(requests.children)
    assert len(requests) == sum(near(x, y, 1 / 12) for x, y in cells)
    assert len(inner) > len(requests) > 0
    assert set(inner.work.tolist()) == {9}


def test_cells_that_ignite_refine_throughout() -> None:
    """Three levels of 3 × 3 are 1 + 9 + 81 + 729 iterations, where the front would flag a fraction of the sub-cells."""
    front = random_front(0.25, seed=3)
    plain, ignited = (refine([front, front], 16, 3, 3, ignitions, seed=5) for ignitions in (0, 7))
    for before, after in zip(plain, ignited, strict=True):
        assert (before.threads.work < 820).all()
        changed = before.threads.work != after.threads.work
        assert changed.sum() == 7
        assert set(after.threads.work[changed].tolist()) == {820}
    assert (ignited[0].threads.work != ignited[1].threads.work).any()


def test_gas_ignites_deep_and_shallow() -> None:
    """Deep: 4 children of 4 and their own 4; shallow: 4 sub-cells of one or two iterations."""
    (kernel,) = ignite(8, 2, deep=3, shallow=20, seed=1)
    requests = requests_of(kernel.threads)
    work = sorted(requests.work.tolist())
    assert work[-3:] == [20, 20, 20]
    assert all(4 <= light <= 8 for light in work[:-3])
    assert len({*work[:-3]}) > 1
    assert requests.launches(0) == 23 + 12
    assert kernel.threads.base.tolist() == [1] * 64


def test_front_grows_and_keeps_its_wrinkles() -> None:
    angle = np.linspace(0, 2 * np.pi, 50)
    small, large = (random_front(radius, seed=0) for radius in (0.1, 0.2))
    x, y = 0.5 + 0.3 * np.cos(angle), 0.5 + 0.3 * np.sin(angle)
    radii = [0.3 - front.distance(x, y) for front in (small, large)]
    assert radii[1] == pytest.approx(2 * radii[0])
    assert np.ptp(radii[0]) > 0.003


def test_candidates_are_the_places_of_the_seed() -> None:
    letters = genome(Species(3000, 0.5, 0.5, 3, 50, 0.05), seed=2)
    text = "".join("ACGT"[letter] for letter in letters)
    starts = np.arange(0, 2900, 37)
    expected = [sum(text.startswith(text[start : start + 6], place) for place in range(2995)) for start in starts]
    found = candidates(letters, starts, 6)
    assert found.tolist() == expected
    assert max(expected) > 5


def test_sections_ask_for_one_child_a_read() -> None:
    (kernel,) = align(np.array([1, 7, 2, 1, 5]), 2, 100)
    requests = requests_of(kernel.threads)
    assert requests.thread.tolist() == [0, 0, 1, 1, 2]
    assert kernel.threads.work.tolist() == [800, 300, 500]
    assert requests.items.tolist() == [1, 7, 2, 1, 5]


def test_repeats_make_up_their_share_of_the_genome() -> None:
    species = Species(200_000, 0.5, 0.3, 4, 100, 0.0)
    found = candidates(genome(species, seed=0), np.arange(0, 199_900), 12)
    assert (found > 10).mean() == pytest.approx(0.3, abs=0.03)


def test_composition_spreads_the_lists_of_candidates() -> None:
    """A seed of n letters has n Bernoulli(GC) of them; a read's seed weighs codes by how often they occur."""
    bases, gc, length = 2_000_000, 0.3, 7
    letters = genome(Species(bases, gc), seed=0)
    assert (letters >= 2).mean() == pytest.approx(gc, abs=0.002)
    lists = candidates(letters, np.arange(0, bases - length, 5), length)
    assert lists.mean() == pytest.approx(bases * (((1 - gc) ** 2 + gc**2) / 2) ** length, rel=0.02)
    spread = np.log((1 - gc) / gc) * (length * gc * (1 - gc)) ** 0.5
    assert np.log(lists).std() == pytest.approx(spread, rel=0.02)
