# The commands of this project; `make help` lists them. Tools run from .venv, the CLI built here too.
SHELL = /bin/sh
.DEFAULT_GOAL = help
.NOTPARALLEL:
export PATH := $(CURDIR)/.venv/bin:$(PATH)

PY = .venv/bin/python
SCRIPTS = images/entrypoint.sh submit/local/attempt.sh submit/runside/run.sh tools/setup.sh
CODE = infra sandbox submit __main__.py tests tools bench examples

.PHONY: help
help: ## list the commands
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' Makefile | while read -r name text; do printf 'make %-10s %s\n' "$$name" "$$text"; done

.PHONY: setup
setup: ## make .venv, with a Pulumi CLI on its PATH (quick when nothing is missing)
	@sh tools/setup.sh

.PHONY: demo
demo: setup ## a fleet, an experiment on it and a clean end, on this machine alone
	@$(PY) tools/demo.py

.PHONY: test
test: setup lint types contracts ## everything that CI runs
	$(PY) -m pytest -n 2 --cov --cov-report=term:skip-covered
	$(PY) tools/matrix.py

.PHONY: quick
quick: setup lint types contracts ## what needs no process, server or engine: under a minute
	$(PY) -m pytest -q -n 2 -m "not slow and not engine"

.PHONY: lint
lint: setup ## style and format
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	shellcheck --shell=sh $(SCRIPTS)
	@if command -v hadolint >/dev/null; then echo hadolint images/*/Dockerfile; hadolint images/*/Dockerfile; \
	else echo "lint: no hadolint for this system; the Dockerfiles were not looked at" >&2; fi

.PHONY: types
types: setup ## strict types
	$(PY) -m mypy

.PHONY: contracts
contracts: setup ## which part may import which
	.venv/bin/lint-imports

.PHONY: matrix
matrix: setup ## the quick tests on every other supported Python of this machine
	$(PY) tools/matrix.py

.PHONY: bench
bench: setup ## print the figures of this machine
	$(PY) -m bench

.PHONY: lock
lock: setup ## renew requirements.lock from pyproject.toml
	$(PY) tools/lock.py

.PHONY: clean
clean: ## remove all that was made here, .venv and .pulumi-bin too
	rm -rf .venv .matrix .pulumi-bin .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
