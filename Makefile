# `make` lists the targets.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Debian's own Python if it is new enough, else the first on PATH that is.
PYTHON ?= $(shell for p in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
NATIVE := $(wildcard */native/*/*.c */native/*/*.h)
PROGRAMS := $(wildcard $(addsuffix /*.[ch],examples benchmarks/* benchmarks/programs/sources tests/programs tests/programs/*) tests/programs/*/*.cpp benchmarks/programs/sources/*.cpp)
PYTEST := $(BIN)/python -m pytest
# One worker more than there are cpus: many tests wait, for a program's end or for a guest's boot.
WORKERS := $(shell expr $$(nproc) + 1)
PARALLEL := --numprocesses $(WORKERS) --maxprocesses 4 --dist loadscope --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup links packages ready demo test test-slow test-systems test-oldest lint bench fuzz wheel lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: links packages $(STAMP) ## install what is missing and put the tools into .venv/bin

links:
	@[ -d src/numaplan/common ] || { echo "setup: error: src/numaplan/common is no link to a folder:" \
		"this checkout has no symbolic links — git config core.symlinks true && git checkout -- src" >&2; exit 3; }

packages:
	@sh scripts/system-packages.sh build record

$(VENV)/.dependencies: requirements.lock
	@PY='$(PYTHON)'; [ -n "$$PY" ] || PY=$$(command -v /usr/bin/python3 || command -v python3); \
	"$$PY" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "setup: error: Python 3.11 or newer is needed — install it, or say make PYTHON=/path/to/python3" >&2; exit 3; }; \
	[ -x $(BIN)/python ] || "$$PY" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(STAMP): $(VENV)/.dependencies pyproject.toml setup.py $(NATIVE)
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q common machine profiler analyzer mapper launcher lab  # as installing would, if not editable
	@touch $@

demo: setup ## record a real program, plan it, launch it, show the proof
	@sh scripts/demo.sh

ready: setup
	@sh scripts/system-packages.sh test lab cluster
	@$(BIN)/nprof setup || echo "tests of emulation are skipped" >&2

test: ready ## run all tests that this machine can in ten minutes
	$(PYTEST) $(PARALLEL) -m 'not slow' --durations 10

test-slow: ready ## run the others, which take twice as long
	$(PYTEST) $(PARALLEL) -m slow --durations 10

test-systems: ## try fresh Debian 12, 13 and testing: demo, unit tests, wheel (root; half an hour)
	@sh scripts/test-systems.sh

test-oldest: setup ## unit tests with the oldest versions that pyproject.toml allows (Python 3.11 or 3.12)
	$(BIN)/uv venv --quiet --clear --python '$(PYTHON)' build/oldest
	$(BIN)/uv pip install --quiet --python build/oldest --resolution lowest-direct --editable '.[dev]'
	build/oldest/bin/python -m pytest $(PARALLEL) tests/unit

lint: setup ## check style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(NATIVE) $(PROGRAMS)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: setup ## measure speed and accuracy against named peers
	$(BIN)/python -m benchmarks

fuzz: setup ## new examples of properties, damaged recordings, hostile traces and plans, signals at random (an hour)
	$(PYTEST) $(PARALLEL) -m hypothesis --hypothesis-profile fuzz --timeout 3600
	$(BIN)/python -m tests.fuzz.recordings 10000
	$(BIN)/python -m tests.fuzz.documents 2000
	$(BIN)/python -m tests.fuzz.signals 1000

wheel: setup ## build one for every Python, for CC's kind of processor and systems no older than this one: dist/
	@command -v $(CC) >/dev/null || { echo "wheel: error: there is no $(CC) — install it (Debian: gcc-aarch64-linux-gnu for aarch64), or say make wheel CC=…" >&2; exit 3; }
	rm -rf build/wheel build/lib* build/bdist*
	_PYTHON_HOST_PLATFORM="linux-$$($(CC) -dumpmachine | cut -d- -f1)" CC='$(CC)' \
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel .
	PATH="$$PWD/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl

lock: ## write requirements.lock anew from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --no-annotate --upgrade --extra dev pyproject.toml -o requirements.lock

clean: ## remove everything that the targets made
	rm -rf $(VENV) build dist demo *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . \( -name '*.so' -o -name '*.elf' \) -path '*/native/*' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
