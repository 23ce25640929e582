# The commands of a developer; `make help` lists them. Each target creates .venv if it does not exist.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME := $(VENV)/.runtime
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q
PYTEST := $(BIN)/python -m pytest
# The packages of this repository, installed from the checkout.
OWN := $(patsubst %/pyproject.toml,%,$(wildcard packages/*/pyproject.toml))
INSTALL_OWN = $(PIP) --no-compile --no-deps --no-build-isolation $(OWN:%=-e %) -e .

# Number of test processes: twice the number of cores, because half of the tests wait for servers. Each process starts its own
# PostgreSQL and Valkey.
JOBS ?= $(shell expr 2 \* $$(nproc))
PARALLEL = -n $(JOBS) --dist loadscope
# T selects a part of the tests: a file, a folder, the id of a test, or an expression for pytest -k.
PART = $(if $(wildcard $(firstword $(subst ::, ,$(T)))),"$(T)",-k "$(T)")
FAST := tests/unit tests/golden tests/property tests/scenarios/stacks/test_create_and_delete.py \
	tests/scenarios/stacks/test_updates.py tests/scenarios/stacks/test_interrupted_updates.py \
	tests/scenarios/children/test_nested_stacks.py tests/scenarios/reconcile \
	tests/scenarios/signals/test_signals.py tests/scenarios/signals/test_signal_acceptance.py \
	tests/integration/api/test_api_stacks.py tests/integration/api/test_api_stack_lists.py packages

# The tests start hundreds of Python processes. Without stored bytecode, each of them compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo up flower check check-types check-style check-scripts test test-fast test-hostile test-long test-compose test-openstack soak bench bench-bars bench-ui bench-openstack corpus corpus-openstack conformance schema-parity openapi lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# Modules are compiled at the end, by all cores: pip uses one, and parallel tests would compile the same modules at the same time.
$(STAMP): pyproject.toml $(OWN:%=%/pyproject.toml) requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --no-compile --require-hashes -r requirements.lock
	@$(INSTALL_OWN)
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib alembic api orchestrator tasks $(OWN:%=%/src) || true
	@touch $@ $(RUNTIME)

# The packages that the server needs, without the packages for development. --no-compile: modules are compiled on first use,
# because most are never imported.
$(RUNTIME): pyproject.toml $(OWN:%=%/pyproject.toml) requirements-runtime.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --no-compile --require-hashes -r requirements-runtime.lock
	@$(INSTALL_OWN)
	@touch $@

venv: $(STAMP)  ## create .venv from the committed lock file

demo: $(RUNTIME)  ## create, change and delete a web application on a temporary server with a simulated OpenStack
	@$(BIN)/python -m orchestrator.cli.commands.demo

up: $(RUNTIME)  ## run the server in the foreground (database, broker, workers, API); Ctrl-C stops it
	@$(BIN)/orchestrator up

flower: $(STAMP)  ## run the server in the foreground, with Flower as a monitor of the tasks
	@$(BIN)/orchestrator up --flower

check: $(STAMP)  ## run ruff, mypy (strict), import contracts, and the limits on code size and on dialect words in prose
	@$(MAKE) -s -j 2 check-types check-style check-scripts

check-types: $(STAMP)
	@$(BIN)/mypy

check-scripts:
	@tools/check_scripts.sh

check-style: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/python tools/code_metrics.py --limits
	@$(BIN)/python tools/prose_words.py > /dev/null || { $(BIN)/python tools/prose_words.py | grep '^\*'; exit 1; }

test: $(STAMP)  ## run all tests except the long tests; T=path or T=expression selects a part
	@$(if $(T),,tools/debian_package.sh pgbouncer pgbouncer)
	@$(PYTEST) -m "not long" -p no:cacheprovider $(if $(T),$(PART),$(PARALLEL))

test-fast: $(STAMP)  ## run unit tests and core scenarios, in under two minutes
	@TEST_PROFILE=fast $(PYTEST) -m "not long" $(PARALLEL) $(if $(T),$(PART),$(FAST))

test-long: $(STAMP)  ## run the long tests: many kills, many random seeds
	@$(PYTEST) -m long

# Browsers for the tests with web pages; the package is installed if there is none.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
test-hostile: $(STAMP)  ## run the attack tests, with the long tests; installs Chromium (apt-get) if there is no browser
	@SUDO=1 tools/debian_package.sh chromium $(BROWSERS)
	@$(PYTEST) -p no:cacheprovider tests/hostile

test-openstack: $(STAMP)  ## run the tests of OpenStack's types on a real control plane: make test-openstack [OPENSTACK_DIR=running one]
	@$(if $(OPENSTACK_DIR),OPENSTACK_DIR="$(OPENSTACK_DIR)") $(BIN)/python -m tests.openstack $(OPENSTACK_SCRIPTS)

test-compose: $(STAMP)  ## build the image and run docker-compose.yml on a Docker engine: kills, scaling, restart, Flower
	@$(BIN)/python -m qa.compose $(COMPOSE_ARGS)

soak: $(STAMP)  ## random requests, kills and outages for an hour: make soak [SECONDS=3600 or KILLS=200] [SEED=1] [OUTAGES=60] [STUCK=0.03] [HELD=0.1]
	@$(BIN)/python -m qa.soak $(if $(KILLS),--kills $(KILLS),--seconds $(or $(SECONDS),3600)) \
		$(if $(SEED),--seed $(SEED)) --outages $(or $(OUTAGES),60) --stuck $(or $(STUCK),0.03) --held $(or $(HELD),0.1)

bench: $(STAMP)  ## measure the speed and print a table: make bench [SHAPES=flat,chain] [SIZE=1000]
	@$(BIN)/python -m qa.bench $(if $(SHAPES),--shapes $(SHAPES)) $(if $(SIZE),--sizes $(SIZE)) $(BENCH_ARGS)

bench-bars: $(STAMP)  ## check the guaranteed minimums of speed, all or BAR=growth,crowd; exits with 1 if any is missed
	@$(BIN)/python -m qa.bench $(if $(BAR),--bar $(BAR),--bars) $(BENCH_ARGS)

bench-ui: $(STAMP)  ## measure the console in Chromium: make bench-ui [SIZES=10,10000,1000000] [WATCH_SECONDS=600] [SCREENSHOTS=folder]
	@SUDO=1 tools/debian_package.sh chromium $(BROWSERS)
	@$(BIN)/python -m qa.console_bench $(if $(SIZES),--sizes $(SIZES)) $(if $(WATCH_SECONDS),--watch $(WATCH_SECONDS)) $(if $(SCREENSHOTS),--screenshots $(SCREENSHOTS))

bench-openstack: $(STAMP)  ## measure the speed with OpenStack: make bench-openstack OPENSTACK_DIR=running one [PARTS=speed,cpu]
	@$(if $(OPENSTACK_DIR),OPENSTACK_DIR="$(OPENSTACK_DIR)") $(BIN)/python -m qa.openstack_bench $(if $(PARTS),--parts $(PARTS))

corpus: $(STAMP)  ## compare the results for real templates with those of Heat: make corpus [CORPUS_DIR=...]
	@$(BIN)/python -m qa.corpus $(CORPUS_DIR)

openapi: $(STAMP)  ## generate docs/openapi.json from the routes and their descriptions
	@$(BIN)/python -m tests.openapi

corpus-openstack: $(STAMP)  ## create, change, check and delete real templates on a cloud: make corpus-openstack [OPENSTACK_DIR=running one]
	@$(if $(OPENSTACK_DIR),OPENSTACK_DIR="$(OPENSTACK_DIR)") $(BIN)/python -m qa.acceptance.templates $(CORPUS_DIR)

conformance: $(STAMP)  ## run Heat's own tests: make conformance [TESTS="hooks preview"] [CONFORMANCE_LIST=file] [CONFORMANCE_OUT=file]
	@$(BIN)/python -m qa.conformance $(TESTS) $(if $(CONFORMANCE_DIR),--dir $(CONFORMANCE_DIR)) \
		$(if $(CONFORMANCE_LIST),--list $(CONFORMANCE_LIST)) $(if $(CONFORMANCE_OUT),--out $(CONFORMANCE_OUT))

# The facts about Heat's types are recorded with an interpreter that has Heat: pip install openstack-heat==27.0.1.
schema-parity: $(STAMP)  ## compare the schemas of all types with Heat's: make schema-parity [HEAT_PYTHON=interpreter to record with]
	@$(if $(HEAT_PYTHON),$(HEAT_PYTHON) -W ignore qa/schema_parity/heat_facts.py > qa/schema_parity/heat-27.0.1.json)
	@$(BIN)/python -m qa.schema_parity

# The packages of this repository are no entries: they are installed from the checkout.
LOCK = $(BIN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url $(foreach path,$(OWN),--no-emit-package $(notdir $(path)))
lock: $(STAMP)  ## update all lock files from pyproject.toml
	@$(LOCK) --group dev --extra embedded --extra flower --extra notifications --extra openstack --output-file requirements.lock pyproject.toml
	@$(LOCK) --no-annotate --group build --extra embedded --extra openstack --constraints requirements.lock \
		--output-file requirements-runtime.lock pyproject.toml
	@$(LOCK) --no-annotate --extra flower --extra openstack --constraints requirements.lock --output-file requirements-image.lock pyproject.toml
	@$(LOCK) --no-annotate --group pyproject.toml:build --constraints requirements.lock --output-file requirements-build.lock

clean:  ## delete all files that the targets created
	rm -rf $(VENV) build dist bench-results .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
