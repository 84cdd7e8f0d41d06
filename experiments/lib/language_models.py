"""Dense language models by the sizes that their published configurations give, and the products of one layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


class Matrix(NamedTuple):
    """A matrix of weights: a product with it makes ``outputs`` of ``inputs`` for each token."""

    outputs: int
    inputs: int


@dataclass(frozen=True, slots=True)
class DenseModel:
    """Sizes of a model with grouped-query attention and a gated inner layer."""

    layers: int
    width: int
    heads: int
    shared_heads: int
    """Heads of keys and values, each of which several heads of queries share."""
    head: int
    """Width of a head."""
    inner: int
    vocabulary: int
    head_norms: bool = False
    """Whether queries and keys are normed by kernels of their own."""

    @property
    def products(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """The matrices of a layer: queries with keys and values, attention's output, gate with up, and down."""
        return (
            Matrix((self.heads + 2 * self.shared_heads) * self.head, self.width),
            Matrix(self.width, self.heads * self.head),
            Matrix(2 * self.inner, self.width),
            Matrix(self.width, self.inner),
        )

    @property
    def answers(self) -> Matrix:
        """The matrix that makes a score for each word."""
        return Matrix(self.vocabulary, self.width)

    @property
    def layer_weights(self) -> int:
        """Weights of all layers."""
        return self.layers * sum(matrix.outputs * matrix.inputs for matrix in self.products)

    @property
    def cache_elements(self) -> int:
        """Elements of the cache of keys and values for a token in one layer."""
        return 2 * self.shared_heads * self.head

    def weight_bytes(self, element_bytes: int) -> int:
        """Bytes of all weights: layers by elements of a size, words at the input and at the output by two bytes each.

        Checkpoints in eight bits leave both tables of words in sixteen.
        """
        return element_bytes * self.layer_weights + 2 * 2 * self.vocabulary * self.width


MODELS: Final = {
    "llama-3.1-8b": DenseModel(32, 4096, 32, 8, 128, 14336, 128_256),
    "llama-3.1-70b": DenseModel(80, 8192, 64, 8, 128, 28672, 128_256),
    "llama-3.3-70b": DenseModel(80, 8192, 64, 8, 128, 28672, 128_256),
    "qwen3-8b": DenseModel(36, 4096, 32, 8, 128, 12288, 151_936, head_norms=True),
    "qwen3-14b": DenseModel(40, 5120, 40, 8, 128, 17408, 151_936, head_norms=True),
    "qwen3-32b": DenseModel(64, 5120, 64, 8, 128, 25600, 151_936, head_norms=True),
}
"""By the configurations that are published with the weights (``config.json``)."""


def model_of(path: str) -> DenseModel | None:
    """The model that a path of a checkpoint names (``nvidia/Llama-3.1-8B-Instruct-FP8``); ``None``: none of these."""
    name = path.rpartition("/")[2].lower()
    return next((model for known, model in MODELS.items() if name.startswith(known)), None)
