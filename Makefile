# Everything a developer does here. `make help` lists it; each target makes .venv when there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest

RUNNING := tests/clients tests/e2e
PARTS := tests/integration tests/kills

# What the tests start are hundreds of processes: where nothing compiled is kept, each compiles all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo up flower check test test-running test-parts test-engine test-long soak bench bench-bars corpus conformance openapi lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check install -q --require-hashes -r requirements.lock
	@$(BIN)/python -m pip --disable-pip-version-check install -q --no-deps --no-build-isolation -e .
	@touch $@

venv: $(STAMP)  ## make .venv from the committed lock

demo: $(STAMP)  ## run the main job on embedded servers and end
	@$(BIN)/python -m orchestrator.cli.commands.demo

up: $(STAMP)  ## the server in the foreground (database, broker, workers, API); Ctrl-C stops it
	@$(BIN)/orchestrator up

flower: $(STAMP)  ## the server in the foreground with Flower watching the tasks
	@$(BIN)/orchestrator up --flower

check: $(STAMP)  ## ruff, mypy strict, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: $(STAMP)  ## everything that must hold on every change
	@$(MAKE) --no-print-directory -j3 test-running test-parts test-engine

# The three of `test`, side by side: a whole server and its clients, which mostly wait; parts on servers of
# their own; and the rest.
test-running: $(STAMP)
	@$(PYTEST) -m "not long" -p no:cacheprovider $(RUNNING)

test-parts: $(STAMP)
	@$(PYTEST) -m "not long" -p no:cacheprovider $(PARTS)

test-engine: $(STAMP)
	@$(PYTEST) -m "not long" -p no:cacheprovider $(addprefix --ignore=,$(RUNNING) $(PARTS))

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

lock: $(STAMP)  ## renew requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --group dev --extra flower --extra keystone \
		--output-file requirements.lock pyproject.toml

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist bench-results .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
