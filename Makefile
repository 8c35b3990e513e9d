# Every command of the project. `make` alone prints them.
#
# A command does all its own set-up: it checks the tools of the machine, makes `.venv` from the locked
# requirements, and builds and installs the wheel when the sources have changed since the last time.
#
# Settings, all optional, taken from the environment:
#   PENSTOCK_PYTHON   the interpreter that `.venv` is made from (python3)
#   PENSTOCK_CACHE    where compiled Rust code is kept between clones; with CI=true it is the user's cache folder
#   DEMO              options for `make demo`, e.g. DEMO="--rows 1_000_000 --seed 11"
#   SPARK             options for `make spark`, e.g. SPARK="sg nexmark --rows 100k --engine executors"
#
# All targets and prerequisites are relative names, so that the clone may lie in a folder with spaces.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The tests must see the installed wheel and nothing else.
unexport PYTHONPATH
unexport PYTHONHOME

export CARGO_TERM_COLOR ?= auto
export PENSTOCK_PYTHON ?= python3

PYTHON := .venv/bin/python
# cargo, with its output in the place that cargo-settings.sh says.
CARGO := scripts/cargo.sh
PHASE := scripts/phase.sh

##@ Use
.PHONY: help
help: ## print this list
	@awk 'BEGIN { FS = ":.*## "; print "make COMMAND" } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: tools-spark install ## generate 5 million rows with Spark, run the engine, check every result row with Spark
	@$(PYTHON) -m penstock.demo $(DEMO)

.PHONY: wheel
wheel: tools environment ## build the release wheel into dist/
	@$(PHASE) "Wheel" scripts/wheel.sh

.PHONY: bench
bench: tools environment ## run the benchmarks
	@$(PHASE) "Benchmarks" $(CARGO) bench --workspace --locked

##@ Check
.PHONY: check
check: tools-lint ## what to run after every save: lints, and all tests but the slow ones
	@$(PHASE) "Suites" scripts/test-suites.sh check
	@printf '\nChecked. `make test` runs everything.\n'

.PHONY: test
test: tools-all ## run every check and every test: what CI runs
	@$(PHASE) "Suites" scripts/test-suites.sh test
	@printf '\nAll checks and tests passed.\n'

.PHONY: soak
soak: tools-all ## run everything at full size: about an hour, every night
	@$(PHASE) "Suites at full size" scripts/test-suites.sh soak
	@printf '\nAll checks and tests passed, at full size.\n'

.PHONY: lint
lint: tools-lint environment format-check lint-python lint-rust ## formatting, clippy, ruff and mypy, without the tests

.PHONY: test-rust
test-rust: tools environment ## unit and integration tests of the crates
	@$(PHASE) "Rust tests" env PENSTOCK_TRIM=off $(CARGO) test --workspace --locked --quiet

.PHONY: loom
loom: tools environment ## model-check the lock-free code with loom
	@$(PHASE) "Loom" scripts/loom.sh
	@$(PHASE) "Loom, weakened" scripts/loom-weakened.sh

.PHONY: shuttle
shuttle: tools environment ## run the workers of the scheduler under random schedules, and show that they can fail
	@$(PHASE) "Shuttle" scripts/shuttle.sh

.PHONY: sanitize
sanitize: tools environment ## run the crates with unsafe code under AddressSanitizer and ThreadSanitizer
	@$(PHASE) "Sanitizers" scripts/sanitize.sh

.PHONY: test-python
test-python: tools install ## Python tests, stubs against the binary, doctests, README and examples
	@$(PHASE) "Stubs against the binary" $(PYTHON) -m mypy.stubtest penstock._penstock
	@$(PHASE) "Python tests" $(PYTHON) -m pytest tests --ignore=tests/spark --ignore=tests/house/test_wheel.py

.PHONY: test-configurations
test-configurations: tools install ## the property tests again, with other blocks, chains, memory, workers and policies
	@$(PHASE) "Other configurations" scripts/test-configurations.sh

.PHONY: test-spark
test-spark: tools-spark install ## compare the engine with Spark's own answer
	@$(PHASE) "Spark tests" $(PYTHON) -m pytest tests/spark

.PHONY: spark
spark: tools-spark install ## generate a million rows of each workload, twice, and check all answers with Spark
	@$(PHASE) "All workloads against Spark" $(PYTHON) -m penstock.cli data check $(SPARK)

.PHONY: test-wheel
test-wheel: tools environment wheel ## install the wheel into a clean environment without Rust, run the README there
	@PENSTOCK_WHEEL="$$(ls dist/penstock-*.whl)" \
	  $(PHASE) "Wheel in a clean environment" $(PYTHON) -m pytest tests/house/test_wheel.py

##@ Change
.PHONY: format
format: tools-lint environment ## format Rust and Python, apply the safe fixes of ruff
	@$(PHASE) "Format" cargo fmt --all
	@$(PYTHON) -m ruff check --fix --quiet .
	@$(PYTHON) -m ruff format .

.PHONY: reference
reference: environment ## write docs/reference anew from the docstrings
	@$(PYTHON) scripts/reference.py

.PHONY: lock
lock: tools-python ## write requirements/*.txt anew, with the newest versions that fit
	@$(PHASE) "Lock" scripts/lock.sh

.PHONY: clean
clean: ## remove everything that the commands made here
	rm -rf .venv dist target build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The parts that the commands above are made of.
.PHONY: tools tools-all tools-lint tools-python tools-spark
tools:
	@scripts/tools.sh python rust cc
tools-all:
	@scripts/tools.sh python rust rust-lint cc java
tools-lint:
	@scripts/tools.sh python rust rust-lint cc
tools-python:
	@scripts/tools.sh python
tools-spark:
	@scripts/tools.sh python rust cc java

.PHONY: environment install install-quick
environment:
	@scripts/environment.sh
install: environment wheel
	@scripts/install.sh dist
# The same package, compiled in less time, to run slower.
install-quick: environment
	@$(PHASE) "Quick wheel" scripts/wheel.sh --quick
	@scripts/install.sh build/quick

.PHONY: format-check lint-python lint-rust
format-check:
	@$(PHASE) "Formatting" cargo fmt --all --check
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
lint-python:
	@$(PHASE) "Types" $(PYTHON) -m mypy
lint-rust:
	@$(PHASE) "Clippy" $(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
