# Each target does its own set-up: on a fresh machine with Python 3.11 or newer, `make demo` or `make test` is enough.
PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
BIN := $(VENV)/bin

# A stamp is named after the lock it was made from, so that a changed lock makes the environment anew.
lock = $(shell cat $(1) | cksum | cut -d' ' -f1)
CORE := $(VENV)/.core-$(call lock,requirements/core.txt)
TEST := $(VENV)/.test-$(call lock,requirements/core.txt requirements/test.txt)
BENCH := $(BENCH_VENV)/.bench-$(call lock,requirements/core.txt requirements/bench.txt)

.PHONY: demo test check bench lock clean

demo: $(CORE) ## the main job on generated pictures, offline after the set-up
	$(BIN)/lookalike demo

test: $(TEST) ## every test
	$(BIN)/python -m pytest -q

check: $(TEST) ## everything a commit must pass: format, lint, types, layers, tests
	VENV=$(VENV) scripts/check

bench: $(BENCH) ## every performance figure, ours beside the peers'
	$(BENCH_VENV)/bin/python -m benchmarks $(ARGS)

lock: ## write the locks anew from pyproject.toml
	$(PYTHON) scripts/lock.py

clean:
	rm -rf $(VENV) $(BENCH_VENV) dist build .mypy_cache .ruff_cache .pytest_cache

$(CORE): requirements/core.txt
	@$(PYTHON) scripts/require_python.py
	@echo "setting up $(VENV) (about half a gigabyte, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@rm -f $(VENV)/.core-* && touch $@

$(TEST): $(CORE) requirements/test.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@rm -f $(VENV)/.test-* && touch $@

$(BENCH): requirements/core.txt requirements/bench.txt
	$(PYTHON) scripts/require_python.py
	test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt -r requirements/bench.txt
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	rm -f $(BENCH_VENV)/.bench-* && touch $@
