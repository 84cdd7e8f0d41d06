"""Submissions: what the board takes, what it refuses in one sentence, and what a row says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.experiments.submission import protocol as rules
from gpusched_env.experiments.submission.board import boards
from gpusched_env.experiments.submission.row import Row, read_row, read_rows
from gpusched_env.experiments.submission.submit import replayed, submit
from tests.refusals import refused

SECRET = "a secret"
SMALL = f"""\
version: "small"
seeds: [11, 12]
sealed: {{sha256: {hashlib.sha256(SECRET.encode()).hexdigest()}, secret: null}}
limit_s: 300
tracks:
  tenants: {{scenarios: [Toy], seeds: {{own: 2}}}}
  task-queues: {{scenarios: [TaskQueue], seeds: {{own: 1}}}}
"""
HEAD = """\
import numpy as np
from gpusched_env.scheduling.commands import Launch, Wait


class Own:
    \"\"\"Launches what came first.\"\"\"

    def reset(self, knowledge, rng):
        self.rng = rng

    def decide(self, view):
"""
FIRST = """\
        pending = view.pending
        able = [row for row in range(len(pending)) if pending.launchable[row]]
        return Launch(int(pending.id[able[0]])) if able else Wait()
"""


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A protocol of two short episodes, and a folder without anything."""
    (tmp_path / "protocol.yaml").write_text(SMALL)
    monkeypatch.setattr(rules, "FILE", tmp_path / "protocol.yaml")
    monkeypatch.chdir(tmp_path)
    rules.protocol.cache_clear()
    yield
    rules.protocol.cache_clear()


def own(body: str = FIRST, head: str = HEAD, name: str = "own.py") -> str:
    """A file with a scheduler that decides so."""
    Path("mine").mkdir(exist_ok=True)
    path = Path("mine", name)
    path.write_text(head + body)
    return str(path)


def row_of(file: str, *, name: str | None = None, secret: str | None = None, track: str = "tenants") -> Row:
    """The row of a submission."""
    options = {"source": "a test", "into": Path("rows"), "workers": 1, "overwrite": False, "command": "gpusched submit"}
    said = submit(file, track=track, name=name, secret=secret, **options)  # type: ignore[arg-type]
    return read_row(Path(said.splitlines()[0].removeprefix("Written: ")))


def test_a_file_becomes_a_row_with_a_copy_of_it_and_a_score_against_the_plain_gpu() -> None:
    row_of("pass-through")
    row = row_of(own())
    assert (row.name, row.kind, row.scheduler, row.protocol) == ("own", "rule", "own.py:Own", "small")
    assert row.files == {"own.py": hashlib.sha256((HEAD + FIRST).encode()).hexdigest()}
    assert Path("rows/tenants/own.py").read_text() == HEAD + FIRST
    assert set(row.hashes) == {"physics", "scheduler", "data"}
    assert [(one.scenario, one.seed, one.sealed) for one in row.episodes] == [("Toy", 11, False), ("Toy", 12, False)]
    row_of("preemptive-priority")
    (board,) = boards(read_rows(Path("rows")).values())
    assert board.score(board.plain) == 1.0
    assert board.rows[0].name == "preemptive-priority"
    assert "`own`" in board.table({one.name: "" for one in board.rows}).markdown()


def test_a_row_says_what_was_read_and_which_files() -> None:
    Path("mine").mkdir()
    Path("mine/table.csv").write_text("1\n")
    urgent = """\
        np.loadtxt(__file__.replace("own.py", "table.csv"))
        pending = view.pending
        able = [row for row in range(len(pending)) if pending.launchable[row]]
        return Launch(int(pending.id[min(able, key=lambda row: pending.profiled_us[row])])) if able else Wait()
"""
    row = row_of(own(urgent))
    assert row.reads == ["profiles"]
    assert list(row.files) == ["own.py", "table.csv"]
    assert Path("rows/tenants/table.csv").read_text() == "1\n"


def test_a_row_comes_out_again_unless_its_file_is_another_one() -> None:
    row_of(own())
    said: list[str] = []
    path = Path("rows/tenants/own.json")
    assert replayed(path, secret=None, workers=1, overwrite=False, tell=said.append)
    assert said == [f"{path}: 2 of 2 episodes equal to the last bit"]
    path.write_text(path.read_text().replace('"cost":', '"cost":1'))
    assert not replayed(path, secret=None, workers=1, overwrite=False, tell=said.append)
    Path("rows/tenants/own.py").write_text(HEAD + FIRST + "\n# another\n")
    with refused(InputError, "own.py", "not the file that the row own was made by"):
        replayed(path, secret=None, workers=1, overwrite=False, tell=said.append)


def test_sealed_seeds_are_drawn_by_the_secret_that_was_committed_to() -> None:
    row_of("pass-through", secret=SECRET)
    row_of("preemptive-priority")
    row = row_of(own(), secret=SECRET)
    sealed = [one.seed for one in row.episodes if one.sealed]
    assert len(set(sealed)) == 2
    assert not set(sealed) & {11, 12}
    (board,) = boards(read_rows(Path("rows")).values())
    # Who has not played them stands behind who has.
    assert board.rows[-1].name == "preemptive-priority"
    with refused(InputError, "--secret", "the protocol committed to"):
        row_of(own(), name="other", secret="another secret")


def test_rows_of_another_simulator_are_not_compared() -> None:
    row_of("pass-through")
    row_of(own())
    path = Path("rows/tenants/own.json")
    path.write_text(path.read_text().replace(read_row(path).hashes["physics"], "0" * 64))
    (board,) = boards(read_rows(Path("rows")).values())
    assert [one.name for one in board.rows] == ["pass-through"]
    assert [one.name for one in board.left] == ["own"]


BODIES = {
    "an error of its own": ("        return view.pendign\n", "own.py, line 12"),
    "an illegal command": ("        return Launch(10**6)\n", "1000000"),
    "other decisions each time": (
        "        pending = view.pending\n"
        "        able = [row for row in range(len(pending)) if pending.launchable[row]]\n"
        "        return Launch(int(pending.id[np.random.default_rng().choice(able)])) if able else Wait()\n",
        "decides otherwise when the same episode is played again",
    ),
    "frames": ("        import sys; sys._getframe(2); return Wait()\n", "looks through the interpreter's frames"),
    "memory": ("        import ctypes; ctypes.string_at(id(view)); return Wait()\n", "addresses memory (ctypes)"),
    "objects": ("        import gc; gc.get_objects(); return Wait()\n", "searches the interpreter's objects"),
    "a process": ("        import os; os.system('true'); return Wait()\n", "own.py, line 12: starts a process"),
    "writing": ("        open('seen', 'w'); return Wait()\n", "own.py, line 12: writes seen"),
    "files elsewhere": ("        open('protocol.yaml'); return Wait()\n", "reads protocol.yaml"),
    "caught": (
        "        try:\n            open('seen', 'w')\n        except Exception:\n            return Wait()\n",
        "writes seen",
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_what_decides_wrongly_is_refused_in_a_sentence_with_its_place(case: str) -> None:
    body, said = BODIES[case]
    with refused(GpuschedError, said) as caught:
        row_of(own(body))
    assert "\n" not in str(caught.value)
    assert not Path("rows").exists()
    assert not Path("seen").exists()


def test_what_reads_more_than_it_declares_is_refused() -> None:
    shortest = FIRST.replace("able[0]", "min(able, key=lambda row: pending.profiled_us[row])")
    with refused(InputError, "own.py:Own", "'profiles'", "does not declare"):
        row_of(own(shortest, HEAD.replace("class Own:", "class Own:\n    reads = ('priorities',)")))


def test_who_is_told_the_truth_is_refused() -> None:
    told = "    clairvoyant = True\n\n    def see(self, truth, seed):\n        pass\n\n    def reset"
    with refused(InputError, "own.py:Own", "clairvoyant"):
        row_of(own(FIRST, HEAD.replace("    def reset", told)))


def test_an_endless_loop_is_ended(tmp_path: Path) -> None:
    (tmp_path / "protocol.yaml").write_text(SMALL.replace("limit_s: 300", "limit_s: 1"))
    rules.protocol.cache_clear()
    with refused(InputError, "took more than 1 s of processor time"):
        row_of(own("        while True:\n            pass\n"))


FILES = {
    "missing.py": ("no such file", "missing.py"),
    "mine/notes.txt": ("expected file.py", "mine/notes.txt"),
    "mine/none.py": ("has no scheduler", "reset(knowledge, rng) and decide(view)"),
    "mine/two.py": ("has 2 schedulers", "name one, as in mine/two.py:Own"),
    "mine/broken.py": ("cannot load", "broken.py"),
    "mine/two.py:Other": ("two.py", "no 'Other'"),
    "missing.npz": ("missing.npz",),
    "orionn": ("did you mean 'orion'",),
}


@pytest.mark.parametrize("file", FILES)
def test_what_is_no_scheduler_is_refused_in_a_sentence(file: str) -> None:
    own("pass\n", "", "none.py")
    own(FIRST, HEAD + FIRST + HEAD.replace("class Own", "class Own2"), "two.py")
    own("def (\n", "", "broken.py")
    Path("mine/notes.txt").write_text("a note\n")
    with refused(InputError, *FILES[file]) as caught:
        row_of(file)
    assert "\n" not in str(caught.value)


def test_names_and_tracks_are_checked_before_anything_is_played() -> None:
    with refused(InputError, "--name 'My EDF'", "small letters"):
        row_of(own(), name="My EDF")
    with refused(InputError, "unknown track 'tenant'", "did you mean 'tenants'"):
        row_of(own(), track="tenant")
    row_of(own())
    with refused(InputError, "own.json", "is there already", "--overwrite"):
        row_of(own())


def test_a_file_enters_no_game_without_kernels() -> None:
    with refused(InputError, "own.py"):
        row_of(own(), track="task-queues")
