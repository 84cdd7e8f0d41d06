"""Iterations in PyTorch that gather and scatter: sums by index, embedding bags, histograms, sorts, sparse products,
attention over prompts of uneven lengths, random access.

Their kernels are long, their grids have thousands of blocks, and many add with atomics: to rows that others add to at
the same time. Indices are drawn once; those of a graph go by a power law, as the degrees of most real graphs do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from gpusched_env.experiments.record.steps import Step

SKEW: Final = 2.0
"""Exponent by which uniform draws become nodes: the larger, the more edges end at the first ones."""
WIDTH: Final = 128
"""Figures of a node, and of a row of an embedding."""
CLASSES: Final = 40


def _nodes(torch: Any, count: int, of: int, skew: float) -> Any:
    """So many draws of one of ``of`` nodes."""
    return (torch.rand(count, device="cuda") ** skew * of).long().clamp_(max=of - 1)


def _graph_convolution(nodes: int, edges: int, layers: int, skew: float) -> Step:
    """An inference of layers that gather a row an edge and sum them by its end, by atomics."""
    torch = import_module("torch")
    start, end = _nodes(torch, edges, nodes, 1.0), _nodes(torch, edges, nodes, skew)
    given = torch.randn(nodes, WIDTH, device="cuda")
    weights = [torch.randn(WIDTH, WIDTH, device="cuda") * WIDTH**-0.5 for _ in range(layers)]

    def step() -> Any:
        with torch.inference_mode():
            state = given
            for weight in weights:
                sums = torch.zeros_like(state).index_add_(0, end, state[start])
                state = torch.relu(sums @ weight)
            return state

    return step


def _graph_training(nodes: int, edges: int, layers: int, skew: float) -> Step:
    """A step of training of the same."""
    torch = import_module("torch")
    start, end = _nodes(torch, edges, nodes, 1.0), _nodes(torch, edges, nodes, skew)
    given = torch.randn(nodes, WIDTH, device="cuda")
    weights = [(torch.randn(WIDTH, WIDTH, device="cuda") * WIDTH**-0.5).requires_grad_() for _ in range(layers)]
    descent = torch.optim.SGD(weights, lr=0.001)

    def step() -> None:
        descent.zero_grad()
        state = given
        for weight in weights:
            # Of a product first, so that the gradient goes back through the gather, which scatters.
            state = state @ weight
            state = torch.relu(torch.zeros_like(state).index_add(0, end, state[start]))
        state.square().mean().backward()
        descent.step()

    return step


def _embedding_bags(rows: int, tables: int, batch: int, bag: int, trains: bool) -> Step:
    """Sums of rows of several tables, as recommenders have them; with its gradients where it ``trains``."""
    torch = import_module("torch")
    bags = [torch.nn.EmbeddingBag(rows, WIDTH, mode="sum").cuda() for _ in range(tables)]
    indices = [_nodes(torch, batch * bag, rows, SKEW).view(batch, bag) for _ in bags]

    def inference() -> Any:
        with torch.inference_mode():
            return torch.cat([one(index) for one, index in zip(bags, indices, strict=True)], dim=1)

    def training() -> None:
        for one, index in zip(bags, indices, strict=True):
            one.weight.grad = None
            # By the gather of rows, whose gradient is a scatter: that of a bag asks the host how long it is.
            one.weight[index].sum(dim=1).square().mean().backward()

    return training if trains else inference


def _histogram(values: int, bins: int) -> Step:
    """Counts by atomics, all of whose additions go to few places."""
    torch = import_module("torch")
    index = _nodes(torch, values, bins, SKEW)
    ones = torch.ones(values, device="cuda")

    def step() -> Any:
        with torch.inference_mode():
            return torch.zeros(bins, device="cuda").scatter_add_(0, index, ones)

    return step


def _sort(values: int) -> Step:
    torch = import_module("torch")
    given = torch.randn(values, device="cuda")

    def step() -> Any:
        with torch.inference_mode():
            return torch.sort(given)

    return step


def _sparse_product(rows: int, entries: int, skew: float) -> Step:
    """A sparse matrix, some rows of which are long, by a dense one."""
    torch = import_module("torch")
    where = torch.stack([_nodes(torch, entries, rows, skew), _nodes(torch, entries, rows, 1.0)])
    sparse = torch.sparse_coo_tensor(where, torch.randn(entries, device="cuda"), (rows, rows))
    sparse = sparse.coalesce().to_sparse_csr()
    dense = torch.randn(rows, WIDTH, device="cuda")

    def step() -> Any:
        with torch.inference_mode():
            return torch.sparse.mm(sparse, dense)

    return step


def _ragged_attention(requests: int, longest: int, heads: int, layers: int) -> Step:
    """Attention of requests of uneven lengths, one after the other, in half precision."""
    torch = import_module("torch")
    lengths = (torch.rand(requests) ** 3 * longest).long().clamp_(min=16).tolist()
    shapes = [(1, heads, length, 64) for length in lengths]
    given = [[torch.randn(shape, device="cuda", dtype=torch.half) for _ in range(3)] for shape in shapes]

    def step() -> Any:
        attention = torch.nn.functional.scaled_dot_product_attention
        with torch.inference_mode():
            return [attention(*one, is_causal=True) for _ in range(layers) for one in given]

    return step


def _random_access(rows: int, reads: int, width: int) -> Step:
    """Rows from anywhere in memory, once read and once written."""
    torch = import_module("torch")
    table = torch.randn(rows, width, device="cuda")
    into = torch.empty(rows, width, device="cuda")
    index, place = _nodes(torch, reads, rows, 1.0), torch.randperm(rows, device="cuda")[:reads]

    def step() -> Any:
        with torch.inference_mode():
            return into.index_copy_(0, place, table[index])

    return step


def _each(name: str, make: Callable[..., Step], *given: Any) -> tuple[str, Callable[[], Step]]:
    return name, functools.partial(make, *given)


SCATTERING: Final[Mapping[str, Callable[[], Step]]] = dict(
    (
        _each("gcn_infer_small", _graph_convolution, 20_000, 200_000, 2, SKEW),
        _each("gcn_infer_large", _graph_convolution, 200_000, 4_000_000, 2, SKEW),
        _each("gcn_infer_even", _graph_convolution, 200_000, 4_000_000, 2, 1.0),
        _each("gcn_train", _graph_training, 100_000, 1_000_000, 2, SKEW),
        _each("embedding_bag_infer", _embedding_bags, 1_000_000, 8, 8192, 32, False),
        _each("embedding_bag_train", _embedding_bags, 200_000, 4, 4096, 16, True),
        _each("histogram_few", _histogram, 8_000_000, 256),
        _each("histogram_many", _histogram, 16_000_000, 1_000_000),
        _each("sort_16m", _sort, 16_000_000),
        _each("sparse_product", _sparse_product, 200_000, 4_000_000, SKEW),
        _each("ragged_attention", _ragged_attention, 24, 4096, 16, 2),
        _each("random_rows", _random_access, 4_000_000, 2_000_000, WIDTH),
        _each("random_words", _random_access, 64_000_000, 16_000_000, 1),
    )
)
SCATTERING_NAMED: Final = re.compile(rf"(?P<program>{'|'.join(SCATTERING)})_scatter")
"""Names of networks that a recording can be asked for: ``gcn_train_scatter``."""
