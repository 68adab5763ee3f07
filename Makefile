# headstart: every task by name. `make` alone lists them.
#
# Needs Rust (cargo), Python 3.11 or newer with venv, a C compiler and make. Everything else goes into .venv and
# target/. `make test` is what CI runs; `make check` is for before a commit.

PYTHON ?= $(shell for each in python3.11 python3.12 python3.13 python3; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; done)
BIN := .venv/bin
# What the Python module is built from.
SOURCES := pyproject.toml lab/pyproject.toml Cargo.toml Cargo.lock docs/package.md LICENSE \
	$(shell find crates \( -name tests -o -name benches -o -name examples \) -prune -o -type f -print)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Further arguments for maturin of `make wheel`, and the target of another machine.
WHEEL ?=
TARGET ?= $(shell rustc -vV | sed -n 's/^host: //p')
SEED ?= 0
SECONDS ?= 60
INPUTS ?= 10000000
WORKERS ?= $(shell echo $$(($$(nproc) + 1)))
# `headstart run` without Python: it has to start at once, so it is small. Without libraries it starts in half the time, where there is a
# static libc.
LAUNCHER := rustc --profile launcher --locked --package headstart-hints --bin headstart-run

# Shows a command as a user types it, and runs it from $(BIN).
, := ,
shown = @echo '$$ $(1)'; $(BIN)/$(1)

.PHONY: help setup wheel wheel-test sdist demo test test-rust test-py check lint lint-rust lint-py fmt golden-update bench fuzz-system serve-bench live-study hints-study serve-study serve-model serve-fuzz serve-faults results docs docs-check site

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(BIN)/.built ## create .venv with the headstart command in it; builds only what changed

$(BIN)/.tools: requirements-dev.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@touch $@

$(BIN)/.built: $(BIN)/.tools $(SOURCES)
	PIP_NO_DEPS=1 PIP_QUIET=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin develop --release
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable lab
	cargo $(LAUNCHER) -- -C strip=symbols -C target-feature=+crt-static || cargo $(LAUNCHER) -- -C strip=symbols
	install target/launcher/headstart-run $(BIN)/headstart-run
	@touch $@

wheel: setup ## build a wheel for every Linux with glibc 2.28 or newer and one of the laboratory, into dist/; docs/install.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang==0.15.1 cargo-zigbuild==0.24.0
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cargo-zigbuild $(LAUNCHER) --target $(TARGET).2.28 -- -C strip=symbols
	mkdir -p packaging/scripts && install target/$(TARGET)/launcher/headstart-run packaging/scripts/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --zig --target $(TARGET) --compatibility manylinux_2_28 --out dist $(WHEEL); \
		status=$$?; rm -r packaging/scripts; exit $$status
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist ./lab

wheel-test: wheel ## install the wheel into a fresh environment of each Python, without Rust, and run the examples of --help
	$(BIN)/python -m pytest tests/test_wheel.py

sdist: setup ## build the source distribution, with docs, examples and tests, into dist/
	$(BIN)/maturin sdist --out dist

demo: setup ## the main job: five policies on a real program's trace, on 1 to 16 disks; advice for a log of strace, and its page
	$(call shown,headstart compare examples/traces/cscope2.csv.xz --disks 1$(,)2$(,)4$(,)8$(,)16 --cache 10MiB --device hp97560 \
		--policies demand:min$(,)fixed-horizon$(,)aggressive$(,)reverse-aggressive$(,)forestall)
	$(call shown,headstart advise examples/traces/sqlite.strace.xz --device hdd$(,)nvme$(,)object-store --html target/demo.html)
	@echo "open the page: $(CURDIR)/target/demo.html"

test: test-rust test-py ## all tests, what CI runs

test-rust: ## the Rust tests, those that wait beside those that compute; `cargo test` runs the same
	$(PYTHON) tests/run_rust.py

# Tests start the command a thousand times: compiled beforehand, it starts sooner where Python writes no bytecode.
# One process more than there are processors, since that of the tests that mount and measure often waits.
test-py: setup ## the Python tests: API, command, docs
	$(BIN)/python -m compileall -q python
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup

check: lint docs-check test-py ## before each commit: lints, docs, unit tests and Python tests
	cargo test --workspace --locked --lib
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --locked check; else echo "SKIPPED: no cargo deny"; fi

lint: lint-rust lint-py ## formatting and lints of both languages

lint-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

lint-py: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

fmt: setup ## format all code
	cargo fmt --all
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

golden-update: ## write the golden results anew; look at the difference before you commit
	HEADSTART_UPDATE_GOLDEN=1 cargo test --workspace --locked golden

fuzz-system: ## random whole systems and servers, checked after every step; a fault is shrunk; SECONDS=3600 SEED=0
	cargo run --release --locked -p headstart-sim --example fuzz -- --seed $(SEED) --seconds $(SECONDS)
	cargo run --release --locked -p headstart-serve --example fuzz_server -- --seed $(SEED) --seconds $(SECONDS)

bench: setup ## references and drive requests per second and peak memory, beside libcachesim where it can be installed
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check libcachesim==0.3.5
	$(BIN)/python benches/bench.py
	$(BIN)/python benches/sweep.py
	$(BIN)/python benches/memory.py

serve-bench: setup ## serve beside qemu-nbd and nbdkit on a file; beside s3backer too: benches/serve_s3.py. ARGS="--rounds 5"
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python benches/serve_file.py $(ARGS)

live-study: setup ## this kernel's read-ahead page by page, and its time on an emulated disk, beside the simulator; root. PAGES= ARGS="--quick"
	$(BIN)/python -m headstart_lab.livestudy $(PAGES)
	$(BIN)/headstart reproduce li07-live $(ARGS)

hints-study: setup ## commands with cold caches, plain and by headstart run, beside the forecast; Linux, root, half an hour. ARGS="--disk own"
	$(BIN)/python -m headstart_lab.hintstudy $(ARGS)

serve-study: setup ## zhang-pfc's two levels as two servers before an emulated disk, beside the simulator; root, an hour. ARGS="--quick"
	$(BIN)/python -m headstart_lab.servestudy $(ARGS)

serve-model: ## 16 connections change an export at random, held against a model of its contents, twice SECONDS=600
	HEADSTART_SERVE_SECONDS=$(SECONDS) cargo test --release --locked -p headstart-serve --test model -- --nocapture

serve-fuzz: ## INPUTS=10000000 hostile connections for the protocol's parsers, and a thousandth of that in random exports
	HEADSTART_FUZZ_CASES=$$(($(INPUTS) / 2)) cargo test --release --locked -p headstart-nbd --test fuzz_short
	HEADSTART_FUZZ_SEED=$(SEED) HEADSTART_FUZZ_CASES=$$(($(INPUTS) / 1000)) cargo test --release --locked -p headstart-serve --test fuzz

serve-faults: setup ## 16 clients while storage, clients, server and upstream fail or are killed; each byte is checked. SECONDS=3600
	$(BIN)/python benches/serve_faults.py --seconds $(SECONDS)

results: setup ## run the studies anew and write their tables in the docs; half an hour. ARGS="li07" for one
	$(BIN)/python docs/results.py $(ARGS); status=$$?; $(BIN)/python docs/generate.py && exit $$status

docs: setup ## write the generated tables anew and build the Rust documentation
	$(BIN)/python docs/generate.py
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --document-private-items

site: setup ## build the documentation as a site, strictly, into target/site/html; tests/test_website.py does so too
	$(BIN)/python docs/website.py

docs-check: setup
	$(BIN)/python docs/generate.py --check
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --document-private-items --quiet
