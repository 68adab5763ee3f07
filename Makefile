# headstart: every task by name. `make` alone lists them.
PYTHON ?= $(firstword $(shell command -v python3.11 python3.12 python3.13 python3 2>/dev/null))
BIN := .venv/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.toml' | grep -v /tests/ | grep -v /benches/) Cargo.toml Cargo.lock
.DEFAULT_GOAL := help
.PHONY: help setup
.DELETE_ON_ERROR:

help: ## list the tasks
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(BIN)/.built ## create .venv with the headstart command in it (builds only what changed)

$(BIN)/.tools: requirements-dev.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

$(BIN)/.built: $(BIN)/.tools pyproject.toml $(RUST_SOURCES)
	$(BIN)/maturin develop --release --quiet
	@touch $@
