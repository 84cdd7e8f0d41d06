"""What a module can be built from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpusched_env import closure as sources
from tests.made_up_package import instead
from tests.refusals import refused

FILES = {
    "__init__.py": "from gpusched_env.far import away\n",
    "far.py": "",
    "low/__init__.py": "from gpusched_env.low.offered import Offer\n",
    "low/offered.py": "",
    "low/law.py": "import gpusched_env.low.constants as c, math\n",
    "low/constants.py": "# from gpusched_env.far import away\n",
    "high/__init__.py": "",
    "high/top.py": """from gpusched_env.low import (
    law,  # from gpusched_env.far import away
    Offer as What,
)
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusched_env.far import away

class Top:
    def later(
        self,
        # Of what?
    ) -> None:
        from gpusched_env.high import late

def never(): ...

try:
    from gpusched_env.high.offered import *
except ImportError:
    pass
""",
    "high/offered.py": "",
    "high/late.py": "",
}


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    with instead(tmp_path, FILES):
        yield tmp_path


def names(package: Path, *modules: str, **options: Any) -> list[str]:
    return [str(path.relative_to(package)) for path in sources.closure(modules, **options)]


def test_a_closure_follows_imports_and_packages_but_not_the_front(package: Path) -> None:
    low = ["low/__init__.py", "low/constants.py", "low/law.py", "low/offered.py"]
    assert names(package, "gpusched_env.low.law") == low
    high = ["high/__init__.py", "high/offered.py", "high/top.py"]
    assert names(package, "gpusched_env.high.top") == sorted([*low, *high, "high/late.py"])
    assert names(package, "gpusched_env.high.top", at_once=True) == [*high, *low]


def test_what_is_apart_or_known_is_not_followed(package: Path) -> None:
    assert names(package, "gpusched_env.high.top", at_once=True, apart=("gpusched_env.low",)) == [
        *("high/__init__.py", "high/offered.py", "high/top.py"),
    ]
    known = frozenset({package / "low" / "law.py", package / "low" / "__init__.py"})
    assert names(package, "gpusched_env.low.law", known=known) == []


def test_modules_of_a_folder(package: Path) -> None:
    found = ["gpusched_env.low", "gpusched_env.low.constants", "gpusched_env.low.law", "gpusched_env.low.offered"]
    assert sources.modules_of("low") == found


def test_a_module_that_is_not_there(package: Path) -> None:
    with refused(FileNotFoundError, "gpusched_env.nowhere", "source"):
        sources.closure(["gpusched_env.nowhere"])
