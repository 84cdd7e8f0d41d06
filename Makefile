# gpusched_env. `make help` lists the targets. Needs Python 3.11 or newer and make; everything else is
# installed into .venv from pyproject.toml at the versions of constraints.txt.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# python3.11 if there is one that runs, else a python3 that is new enough: constraints.txt is made for 3.11.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Numba and torch each start a thread a core otherwise, and small jobs get slower, not faster.
export OMP_NUM_THREADS := 1

# Each process would rewrite the assertions of all tests otherwise, and compile the package.
unexport PYTHONDONTWRITEBYTECODE

# How many pytest processes.
JOBS ?= 2

# The site shows notebooks with their outputs. Those that changed since `make test-long` or the last `make docs` are
# run before, which takes minutes; EXECUTE=off leaves them without.
DOCS_OUT ?= build/site
DOCS_PORT ?= 8000
EXECUTE ?= on
NOTEBOOKS := $(wildcard experiments/notebooks/*.ipynb)
EXECUTED := $(if $(filter off,$(EXECUTE)),,$(NOTEBOOKS:experiments/notebooks/%=build/notebooks/%))

RANKINGS := $(wildcard $(addprefix docs/results/,*.json.gz $(addsuffix /*.json.gz,engine headroom saturated serving tiles)))
# Episodes of the sample: about a minute.
SAMPLE ?= 16
PAPERS := acs atos bwlock cluster-agent cluster-queue-agent colocation-agent concurrency cusync eclip fgd fgd-co-location fgd-lifetimes fikit fleet-agent fleet-blocks fleet-rates gpucolo \
	gpucolo-fleet orion peers recordings reef shared-memory-agent spawn tally task-queue-agent time-per-token xsched

.PHONY: help install install-dev demo test test-long test-slow test-gpu lint format bench episodes results readme again replay-sample docs docs-serve reference architecture clean

help:
	@echo "make install    environment in $(VENV): everything needed to simulate and compare"
	@echo "make demo       install, then compare eight schedulers and write a report"
	@echo "make test       lint, types, layering and the tests that take seconds"
	@echo "make test-long  those that take longer, which continuous integration runs as well"
	@echo "make test-slow  the tests that take minutes"
	@echo "make test-gpu   the contract of devices, on the GPU of this machine"
	@echo "make lint       ruff, mypy and import-linter alone"
	@echo "make format     let ruff format and fix what it can"
	@echo "make bench      benchmarks, as ratios measured side by side"
	@echo "make results    the page of trained agents, docs/results.md, and the leaderboard, from the result files in docs/results"
	@echo "make episodes   the page of episodes, docs/episodes.html, played anew"
	@echo "make readme     the README's tables, from the result files, and its learning curve, by the block that draws it"
	@echo "make again      plays all that result files have of other sources, and all papers, and says what comes out otherwise"
	@echo "make replay-sample  plays some episodes of all result files again, others for each commit"
	@echo "make docs       the site of the pages in docs, with a search, into $(DOCS_OUT)"
	@echo "make reference  pages of environments, interface, scenarios and schedulers, as the site has them, into build/reference"
	@echo "make architecture  the picture and tables of ARCHITECTURE.md and the layers of CONTRIBUTING.md, from the code"
	@echo "make docs-serve the same, shown on http://localhost:$(DOCS_PORT)"
	@echo "make clean      remove $(VENV) and everything that builds and tools left"

# A stamp is written last, so that an interrupted install is done again.
$(VENV)/.python:
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || \
		{ echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "$(PYTHON) lacks the venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	@touch $@

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "Installing into $(VENV) (half a minute, depending on the network)"
	@$(PIP_INSTALL) setuptools
	@$(PIP_INSTALL) --no-build-isolation -e '.[experiments]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "Installing into $(VENV) with the learning and test tools (a minute or two, depending on the network)"
	@$(PIP_INSTALL) setuptools
	@$(PIP_INSTALL) --no-build-isolation -e '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: $(VENV)/.dev
	@echo "Installing what the site is built with"
	@$(PIP_INSTALL) --no-build-isolation -e '.[docs]'
	@touch $@

install: $(VENV)/.core

install-dev: $(VENV)/.dev

demo: install
	$(BIN)/gpusched demo

lint: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow and not long"

test-long: install-dev
	$(BIN)/python -m pytest -n $(JOBS) -m "long and not slow"

test-slow: install-dev
	$(BIN)/python -m pytest -n $(JOBS) -m slow

test-gpu: install-dev
	@$(PIP_INSTALL) --no-build-isolation -e '.[gpu]'
	$(BIN)/python -m pytest tests/devices/cuda/test_contract.py

bench: install-dev
	$(BIN)/gpusched lab bench

episodes: install-dev
	$(BIN)/python -m gpusched_env.experiments.reference.episodes docs/episodes.html

results: install-dev
	$(BIN)/gpusched lab page results $(wildcard docs/results/*.json.gz) \
		$(addprefix --curves ,$(wildcard docs/results/curves/*.json.gz)) --docs docs/results.md
	$(BIN)/python -m gpusched_env.experiments.reference.leaderboard docs

# Seeds decide what the block learns, so that the picture changes where the physics does.
readme: install-dev
	$(BIN)/python -m gpusched_env.experiments.results.readme README.md
	mkdir -p build/readme
	cd build/readme && $(abspath $(BIN))/python $(abspath docs/examples/readme_training.py)
	cp build/readme/runs/learning.png docs/examples/readme_training.png

# Ends with an error where the simulator says another figure than when result files and pages were written. What is equal
# is noted in the result files, and not played the next time. Status 1 of a paper is none: some of its figures do not
# come out, as its page says; a page that is not written is missing then.
again: install-dev
	$(BIN)/gpusched lab replay $(RANKINGS) --note
	for paper in $(PAPERS); do \
		rm -f docs/$$paper.md; $(BIN)/gpusched reproduce $$paper --docs docs/$$paper.md || test $$? = 1 || exit 2; done
	for row in $$(find docs/submissions -name '*.json'); do $(BIN)/gpusched submit $$row --overwrite; done
	$(MAKE) results readme
	git diff --exit-code --stat -- docs ':!docs/results'

replay-sample: install-dev
	$(BIN)/gpusched lab replay $(RANKINGS) --sample $(SAMPLE) --draw "$$(git rev-parse HEAD)"

build/notebooks/%.ipynb: experiments/notebooks/%.ipynb | $(VENV)/.dev
	$(BIN)/python -m pytest -q -k $* tests/test_notebooks.py

# A dead link or an unknown role is a warning, and warnings are errors.
docs: $(VENV)/.docs $(EXECUTED)
	GPUSCHED_DOCS_EXECUTE=$(EXECUTE) $(BIN)/python -u -m sphinx -b html -W --keep-going -c docs/site docs $(DOCS_OUT)
	@echo "Open $(DOCS_OUT)/index.html in a browser, or run make docs-serve."

# The site has them without this.
reference: install-dev
	$(BIN)/python -m gpusched_env.experiments.reference build/reference

architecture: install-dev
	$(BIN)/python -m gpusched_env.experiments.reference.architecture

docs-serve: docs
	$(BIN)/python -m http.server --directory $(DOCS_OUT) $(DOCS_PORT)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis \
		docs/api .coverage results/demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
