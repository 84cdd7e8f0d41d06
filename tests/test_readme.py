"""What the README and the pages beside it tell a reader to type works, and the README is short, linked and current."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from gpusched_env.experiments.results import quoted, readme
from gpusched_env.scenarios.games import GAMES
from gpusched_env.scenarios.scenario import scenario_names
from tests.agents.made_up import made_up, written
from tests.conftest import Run

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text()
TUTORIAL = ("train-an-agent", "compare-schedulers")
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in TUTORIAL)]
"""Whose blocks and commands are run, each for itself."""
TRACED = ROOT / "docs" / "bring-a-trace.md"
"""Whose commands are run one after the other."""
SCHEDULER_FILE = "my_scheduler.py"
"""The README names the block of a scheduler of one's own so, and then compares it from the command line."""
TRACE = "experiments/notebooks/bert_b8_h100.kineto.json.gz"
BRIEFLY = {"total_timesteps=100_000": "total_timesteps=14_336", "seeds=20": "seeds=2"}
"""How a training runs here; as it is written, tests/test_examples.py runs it."""
IGNORED = ("results/", "runs/", "__pycache__/", SCHEDULER_FILE)
"""Where what readers run may write: git ignores the folders, the file is theirs."""
WORDS, WORDS_OF_A_PARAGRAPH = 900, 80
LINES_OF_A_SCREEN = 75
CODE = ("gpusched_env", "agents", "baselines", "experiments", "tests")
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(language: str, path: Path) -> list[str]:
    return [block for of, block in FENCED.findall(path.read_text()) if of == language]


PYTHON_BLOCKS = [
    block
    for path in (*PAGES, *(ROOT / "docs" / f"{name}.md" for name in ("comparing", "films", "index", "load-sweeps")))
    for block in blocks("python", path)
]
SCHEDULER = next(block for block in PYTHON_BLOCKS if "class OneAhead" in block)
COMMANDS = list(
    dict.fromkeys(
        line.strip()
        for path in PAGES
        for block in blocks("sh", path)
        for line in block.splitlines()
        if line.startswith("gpusched ") and "--live" not in line
    )
)


SAMPLED = "gpusched compare Toy --schedulers pass-through,sjf --seeds 3 --out results/toy"
SAMPLE = next(block for block in blocks("text", PAGES[0])).splitlines()[1:]
"""Rows of the table that the README shows of it."""


def written_here(folder: Path) -> list[str]:
    """Files that git would call untracked."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return [name for name in found if not name.startswith(IGNORED)]


@pytest.mark.long
@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_python_blocks_run_and_leave_nothing_behind(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "RecordVideo" in block:
        pytest.importorskip("moviepy", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    script = tmp_path / SCHEDULER_FILE
    for long, short in BRIEFLY.items():
        block = block.replace(long, short)
    script.write_text(block)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip() or block == SCHEDULER  # a class that others import says nothing
    assert written_here(tmp_path) == []


def test_the_training_is_the_example_that_learns() -> None:
    assert (ROOT / "docs" / "examples" / "readme_training.py").read_text() in PYTHON_BLOCKS


def test_the_own_scheduler_takes_about_20_lines() -> None:
    source = SCHEDULER
    lines = source[source.index("class ") :].strip().splitlines()
    assert len(lines) <= 20


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run_and_leave_nothing_behind(
    command: str, gpusched: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / SCHEDULER_FILE).write_text(SCHEDULER)
    (tmp_path / "runs").mkdir()
    (tmp_path / TRACE).parent.mkdir(parents=True)
    shutil.copy(ROOT / TRACE, tmp_path / TRACE)
    written(made_up("Toy"), tmp_path / "runs" / "toy_ppo.npz")
    written(made_up("ServingPoisson"), tmp_path / "runs" / "serving_ppo.npz")
    before = written_here(tmp_path)
    program, *arguments = shlex.split(command)
    assert program == "gpusched"
    assert gpusched(*arguments) == 0
    assert written_here(tmp_path) == before
    if command == SAMPLED:
        printed = [set(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert [row for row in SAMPLE if not any(set(row.split()) <= line for line in printed)] == []


@pytest.mark.long
def test_a_trace_becomes_a_scenario_that_is_compared(
    gpusched: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / TRACE).parent.mkdir(parents=True)
    shutil.copy(ROOT / TRACE, tmp_path / TRACE)
    (scenario,) = blocks("yaml", TRACED)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine.yaml").write_text(scenario)
    commands = [line for block in blocks("sh", TRACED) for line in block.splitlines()]
    assert [gpusched(*shlex.split(command)[1:]) for command in commands] == [0, 0]


@pytest.mark.parametrize("name", [*TUTORIAL, "bring-a-trace", "reproduce-a-paper"])
def test_pages_for_beginners_fill_one_screen(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    assert len(text.splitlines()) <= LINES_OF_A_SCREEN
    assert len(FENCED.sub("", text).split()) <= 200


def test_the_readme_is_short() -> None:
    # The rules of a table are no words.
    assert len([word for word in TEXT.split() if not set(word) <= set("|-:")]) <= WORDS
    prose = re.sub(r"\]\([^)]*\)", "]", FENCED.sub("", TEXT))
    long = [p for p in prose.split("\n\n") if len(p.split()) > WORDS_OF_A_PARAGRAPH and "| ---" not in p]
    assert long == []


def test_the_readme_states_no_result_in_prose() -> None:
    prose = [p for p in FENCED.sub("", TEXT).split("\n\n") if "|" not in p and "<!--" not in p]
    assert [p for p in prose if re.search(r"\d\s?%|\d\.\d+ (times|ms|µs)", p)] == []


def test_the_readmes_tables_are_those_of_result_files_and_pages() -> None:
    assert all(f"<!-- {name} -->\n|" in TEXT for name in ("results", "agents", "peers", "accuracy"))
    assert readme.updated(TEXT, ROOT / "docs") == TEXT, (
        "python -m gpusched_env.experiments.results.readme README.md renews it"
    )


def test_figures_of_limitations_are_those_of_their_pages() -> None:
    rows = list(quoted.rows(ROOT / "docs" / "limitations.md", "evidence"))
    assert len(rows) == 8
    for row in rows:
        page = re.search(r"\((.+)\)", row["evidence"])
        assert page is not None
        figures = re.findall(r"-?\d+\.\d+(?= ?%)", (ROOT / "docs" / page[1]).read_text())
        assert row["error"] in {f"{float(figure):.1f}%" for figure in figures}, row


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a page's table of the best of each kind, links as their texts."""
    return [
        {head: re.sub(r"^\[(.*)\]\(#.*\)$", r"\1", cell) for head, cell in row.items()}
        for row in quoted.rows(path, "best published")
    ]


def test_pages_of_results_say_the_same() -> None:
    """A scenario and set of workloads is told alike, to the digit, wherever it stands."""
    said = list(quoted.rows(ROOT / "README.md", "own: best other"))
    assert len(said) == len(readme.SHOWN)
    for page in ("leaderboard", "results"):
        there = rows_of(ROOT / "docs" / f"{page}.md")
        for row in said:
            for of in ("own", "held-out"):
                (other,) = [one for one in there if (one["scenario"], one["workloads"]) == (row["scenario"], of)]
                assert row[f"{of}: best other"] in (other["best published"], other["best rule"])
                difference, verdict = other["agent against the best"], other["verdict"].partition(" ")[0]
                mark = "" if verdict == "no" else f" {verdict}"
                assert row[f"{of}: agent against it"] == f"{difference}{mark}"


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        if not target.startswith(("http://", "https://"))
    ]
    assert (ROOT / "README.md", "docs/README.md") in links
    assert (ROOT / "README.md", "docs/pictures/gpu.gif") in links
    assert [
        f"{page.relative_to(ROOT)}: {target}" for page, target in links if not (page.parent / target).exists()
    ] == []


def test_files_that_pages_name_are_there() -> None:
    there = [f"/{path.relative_to(ROOT)}" for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    named = {
        (page.name, name)
        for page in (ROOT / "docs").glob("*.md")
        if "<!-- Generated by" not in page.read_text()[:400]
        for name in re.findall(r"`([\w/]+/\w+\.py)`", page.read_text())
    }
    assert named
    assert {(page, name) for page, name in named if not any(path.endswith(f"/{name}") for path in there)} == set()


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md", "index.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()


def test_every_environment_has_a_film_that_loads_quickly() -> None:
    films = {path.stem: path.stat().st_size for path in (ROOT / "docs" / "pictures").glob("*.gif")}
    assert films.pop("gpu") <= 1_500_000
    assert set(films) == {*scenario_names(), *GAMES}
    assert max(films.values()) <= 300_000
    assert sum(films.values()) <= 5_000_000
