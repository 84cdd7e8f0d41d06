"""The time alone, worked out by hand. Drawn programs against the devices: tests/devices/test_alone.py."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gpusched_env.hardware.specs import Copies, load_gpu
from gpusched_env.workload.alone import AloneNode, AloneOp
from gpusched_env.workload.idle_gpu import IdleGpu, Span
from gpusched_env.workload.workload import OpKind as Kind

TOY = load_gpu("toy-4sm")
GPU = replace(
    TOY,
    timing=replace(
        TOY.timing, launch_latency_us=2.0, stream_gap_us=1.0, graph_gap_us=0.5, graph_gap_beside_us=0.25,
        event_latency_us=1.5, sync_latency_us=3.0, child_launch_us=6.0,
    ),
)  # fmt: skip


def op(
    kind: Kind, host_us: float, device_us: float = 0.0, stream: int = 0, after: tuple[int, ...] = (), mark: int = -1
) -> AloneOp:
    return AloneOp(kind, host_us, device_us, stream, 1.0, after, mark)


def spans(*threads: list[AloneOp], depth: int = 1024) -> list[list[Span]]:
    """When the parts of each thread's operations ran."""
    return [[span for parts in own for span in parts] for own in IdleGpu(GPU, depth).play(threads).spans]


def test_launches_of_two_threads_enter_a_stream_when_they_happen() -> None:
    main = [op(Kind.KERNEL, 10.0, 40.0), op(Kind.KERNEL, 900.0, 40.0), op(Kind.SYNC, 5.0)]
    other = [op(Kind.KERNEL, 100.0, 80.0)] * 8
    first, second = spans(main, other)
    assert first == [(12.0, 52.0), (912.0, 952.0)]
    assert second == [(2.0 + 100.0 * k, 82.0 + 100.0 * k) for k in range(1, 9)]
    assert IdleGpu(GPU).play([main, other]).host_us == 955.0


def test_a_full_queue_holds_the_host() -> None:
    program = [op(Kind.KERNEL, 1.0, 10.0)] * 4
    # Issued at 1 and 2; the third launch waits for the first end, at 13, the fourth for the second, at 24.
    assert IdleGpu(GPU, launch_depth=2).play([program]).host_us == 24.0
    assert spans(program, depth=2) == [[(3.0, 13.0), (14.0, 24.0), (25.0, 35.0), (36.0, 46.0)]]
    assert IdleGpu(GPU).play([program]).host_us == 4.0


def test_an_event_that_has_happened_costs_nothing() -> None:
    first = op(Kind.KERNEL, 1.0, 4.0, mark=0)
    # It ends at 7: a launch at 8 finds it done, one at 6 starts an event's latency behind it.
    assert spans([first, op(Kind.KERNEL, 7.0, 1.0, 1, after=(0,))])[0][1] == (10.0, 11.0)
    assert spans([first, op(Kind.KERNEL, 5.0, 1.0, 1, after=(0,))])[0][1] == (8.5, 9.5)


@pytest.mark.parametrize(("engines", "start_us"), [(2, 4.0), (1, 13.0)])
def test_copies_queue_for_their_engine(engines: int, start_us: float) -> None:
    program = [
        op(Kind.COPY_TO_DEVICE, 1.0, 10.0, 0),
        op(Kind.COPY_TO_HOST, 1.0, 5.0, 1),
        op(Kind.COPY_TO_DEVICE, 1.0, 5.0, 2),
        op(Kind.MEMSET, 1.0, 5.0, 3),
    ]
    copies = Copies(engines=engines, bytes_per_us=1e4)
    played = IdleGpu(replace(GPU, copies=copies)).play([program])
    last = 13.0 if engines == 2 else 18.0
    assert played.spans[0] == [
        ((3.0, 13.0),), ((start_us, start_us + 5.0),), ((last, last + 5.0),), ((6.0, 11.0),)
    ]  # fmt: skip


def test_a_graph_beside_a_kernel_and_a_kernel_with_a_child() -> None:
    kernel = AloneNode(Kind.KERNEL, 2.0)
    graph = AloneOp(Kind.GRAPH, 1.0, 0.0, 1, 1.0, nodes=(kernel, AloneNode(Kind.KERNEL, 2.0, (0,))))
    # The first node ends at 6, when the kernel of the other stream runs.
    assert spans([op(Kind.KERNEL, 1.0, 5.0), graph]) == [[(3.0, 8.0), (4.0, 6.0), (6.75, 8.75)]]
    assert spans([graph]) == [[(3.0, 5.0), (5.5, 7.5)]]
    parent = AloneOp(Kind.KERNEL, 1.0, 1.0, 0, 1.0, children=(kernel,))
    # From 3: the child is issued at 9 and runs from 11 to 13; the next kernel follows that.
    assert spans([parent, op(Kind.KERNEL, 0.0, 1.0)])[0][1] == (14.0, 15.0)


def test_a_wait_for_what_comes_behind_it_is_passed() -> None:
    one = [op(Kind.KERNEL, 1.0, 1.0, after=(1,), mark=0)]
    other = [op(Kind.KERNEL, 2.0, 1.0, 1, after=(0,), mark=1)]
    # Both wait from 2 on; the first goes on then, and the second waits for that.
    assert spans(one, other) == [[(4.0, 5.0)], [(6.5, 7.5)]]
