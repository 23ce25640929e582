# Everything a developer does here. `make help` lists it; each target makes .venv when there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME := $(VENV)/.runtime
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q
PYTEST := $(BIN)/python -m pytest

# Twice the cores: half of the tests wait for servers. Each process has its own PostgreSQL and Valkey.
JOBS ?= $(shell expr 2 \* $$(nproc))
PARALLEL = -n $(JOBS) --dist loadscope
# T is a file, a folder, a test's id, or an expression for pytest -k.
PART = $(if $(wildcard $(firstword $(subst ::, ,$(T)))),"$(T)",-k "$(T)")
FAST := tests/unit tests/golden tests/property tests/scenarios/stacks/test_create_and_delete.py \
	tests/scenarios/stacks/test_updates.py tests/scenarios/children/test_nested_stacks.py tests/scenarios/reconcile \
	tests/scenarios/signals/test_signals.py tests/integration/api/test_api_stacks.py

# What the tests start are hundreds of processes: where nothing compiled is kept, each compiles all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo up flower check test test-fast test-long soak bench bench-bars corpus conformance openapi lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ $(RUNTIME)

# Without the packages of the developers. Modules are compiled on first use: most are never imported.
$(RUNTIME): pyproject.toml requirements-runtime.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --no-compile --require-hashes -r requirements-runtime.lock
	@$(PIP) --no-compile --no-deps --no-build-isolation -e .
	@touch $@

venv: $(STAMP)  ## make .venv from the committed lock

demo: $(RUNTIME)  ## create, inspect and delete a stack on a temporary server
	@$(BIN)/python -m orchestrator.cli.commands.demo

up: $(RUNTIME)  ## the server in the foreground (database, broker, workers, API); Ctrl-C stops it
	@$(BIN)/orchestrator up

flower: $(STAMP)  ## the server in the foreground with Flower watching the tasks
	@$(BIN)/orchestrator up --flower

check: $(STAMP)  ## ruff, mypy strict, import contracts, limits on size and dialect
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/code_metrics.py --limits
	@$(BIN)/python tools/prose_words.py > /dev/null || { $(BIN)/python tools/prose_words.py | grep '^\*'; exit 1; }

test: $(STAMP)  ## everything that must hold on every change; T=path or T=expression for a part
	@$(PYTEST) -m "not long" -p no:cacheprovider $(if $(T),$(PART),$(PARALLEL))

test-fast: $(STAMP)  ## the inner loop: unit tests and the core scenarios, in under two minutes
	@TEST_PROFILE=fast $(PYTEST) -m "not long" $(PARALLEL) $(if $(T),$(PART),$(FAST))

test-long: $(STAMP)  ## the long runs: many kills, many seeds
	@$(PYTEST) -m long

soak: $(STAMP)  ## an hour of random requests and kill -9: make soak [SECONDS=3600] [SEED=1]
	@$(BIN)/python -m tests.kills --seconds $(or $(SECONDS),3600) $(if $(SEED),--seed $(SEED))

bench: $(STAMP)  ## the table of speeds: make bench [SHAPES=flat,chain] [SIZE=1000]
	@$(BIN)/python -m tests.bench $(if $(SHAPES),--shapes $(SHAPES)) $(if $(SIZE),--sizes $(SIZE)) $(BENCH_ARGS)

bench-bars: $(STAMP)  ## the figures we hold ourselves to, or BAR=growth,crowd alone; exits with what falls short
	@$(BIN)/python -m tests.bench $(if $(BAR),--bar $(BAR),--bars) $(BENCH_ARGS)

corpus: $(STAMP)  ## real templates, compared with what Heat answers: make corpus [CORPUS_DIR=...]
	@$(BIN)/python -m tests.corpus $(CORPUS_DIR)

openapi: $(STAMP)  ## renew docs/openapi.json from the routes and what is said of them
	@$(BIN)/python -m tests.openapi

conformance: $(STAMP)  ## Heat's own tests: make conformance [TESTS="hooks preview"] [CONFORMANCE_LIST=file] [CONFORMANCE_OUT=file]
	@$(BIN)/python -m tests.conformance $(TESTS) $(if $(CONFORMANCE_DIR),--dir $(CONFORMANCE_DIR)) \
		$(if $(CONFORMANCE_LIST),--list $(CONFORMANCE_LIST)) $(if $(CONFORMANCE_OUT),--out $(CONFORMANCE_OUT))

lock: $(STAMP)  ## update requirements.lock and requirements-runtime.lock from pyproject.toml
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --group dev --extra embedded --extra flower \
		--extra keystone --output-file requirements.lock pyproject.toml
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --group build --extra embedded \
		--constraints requirements.lock --output-file requirements-runtime.lock pyproject.toml

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist bench-results .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
