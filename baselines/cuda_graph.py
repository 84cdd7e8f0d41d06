"""The whole graph of a program is made first and sent to the GPU as one launch, as CUDA graphs are.

The baseline *CUDAGraph* of ACS (Durvasula et al., arXiv 2401.12377, section 5): where the graph depends on the input it
has to be made for each, which took 47 % of the time of Brax; where it does not, once.
"""

from __future__ import annotations

from gpusched_env.baselines.serial import Serial
from gpusched_env.errors import InputError
from gpusched_env.scenarios.launching import Capture
from gpusched_env.scenarios.set_up import SetUp


class CudaGraph(Serial):
    """What is launched between two synchronisations becomes a CUDA graph, made for each input, and launched."""

    def __init__(self, per_input: bool = True, node_us: float = 2.3, edge_us: float = 0.9) -> None:
        """
        Args:
            per_input: whether each job makes its graphs anew; otherwise they are there already.
            node_us: host time of making a graph, for each node.
            edge_us: the same for each edge.

        Raises:
            InputError: a negative time.
        """
        if not (node_us >= 0.0 and edge_us >= 0.0):
            raise InputError(f"cuda-graph: node_us is {node_us} and edge_us {edge_us}, must be at least 0")
        self.set_up = SetUp(capture=Capture(node_us, edge_us, per_input))
