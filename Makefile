# Every target sets up what it needs first; scripts/setup.sh leaves alone what is already there.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON_IN := .venv/bin/python
PYTEST := $(PYTHON_IN) -m pytest
PYTEST_OPTIONS ?=
NAME ?=
BENCH_OPTIONS ?=

.PHONY: help setup demo test test-slow lint format bench clean

help:  ## show this help
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup:  ## install all that demo, tests and linters need (as root also compilers and the sandbox's tools)
	@scripts/setup.sh test

demo:  ## tune two small C programs with three advisors and show the evidence (first time: under 6 minutes)
	@scripts/setup.sh demo
	@$(PYTHON_IN) -m experiments.demo $(if $(NEW),--new)

test: setup  ## the default tests (at most 15 minutes)
	@$(PYTEST) -n 2 -m "not slow and not serial and not torch" $(PYTEST_OPTIONS)
	@$(PYTEST) -m "serial and not slow and not torch" $(PYTEST_OPTIONS)

test-slow: setup  ## the second tier, one test at a time (at most 25 minutes)
	@$(PYTEST) -m "slow and not torch" $(PYTEST_OPTIONS)

lint: setup  ## style, types, and which package may import which
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

format: setup  ## format the code and fix what can be fixed
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

bench: setup  ## measure complab against its bars: NAME=sandbox, measure or runs; BENCH_OPTIONS=--quick
	@$(if $(NAME),,echo "make bench NAME=sandbox, measure or runs" >&2; exit 2)
	@.venv/bin/complab bench $(NAME) $(BENCH_OPTIONS)

clean:  ## remove caches and build products; runs and .venv stay
	@rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build *.egg-info
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
