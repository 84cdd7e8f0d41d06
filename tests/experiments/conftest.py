"""Small comparisons on the fake device (see ``fakes.py``)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.comparison import Comparison

FAKES = Path(__file__).with_name("fakes.py")


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let interrupts through, also in a run that was started in the background, where they are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def fake() -> Callable[[str], str]:
    """The reference ``file.py:Name`` of something in ``fakes.py``."""
    return lambda name: f"{FAKES}:{name}"


@pytest.fixture(scope="session")
def run_fake(fake: Callable[[str], str]) -> Callable[..., Comparison]:
    """``compare`` of the fake schedulers ``patient`` and ``eager`` on Toy; keywords replace arguments."""

    def run(device: str = "FakeDevice", names: tuple[str, ...] = ("patient", "eager"), **options: Any) -> Comparison:
        schedulers = {name: fake(name.capitalize()) for name in names}
        options = {"seeds": 3, "workers": 1, "record": "blocks", **options}
        return compare("Toy", schedulers, options.pop("seeds"), device=fake(device), **options)

    return run


@pytest.fixture(scope="session")
def comparison(run_fake: Callable[..., Comparison]) -> Comparison:
    """Two schedulers, three seeds, blocks recorded."""
    return run_fake()
