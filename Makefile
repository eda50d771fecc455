# Each target does its own set-up: on a fresh machine with Python 3.11 or newer, `make demo` or `make test` is enough.
PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
BIN := $(VENV)/bin

# A stamp is named after the lock it was made from, so that a changed lock makes the environment anew.
lock = $(shell cat $(1) | cksum | cut -d' ' -f1)
CORE := $(VENV)/.core-$(call lock,requirements/core.txt)
TEST := $(VENV)/.test-$(call lock,requirements/core.txt requirements/test.txt)
# An environment may be shared by checkouts (CI keeps one): the project is installed anew where another was last.
HERE := $(VENV)/.project-$(shell (pwd; cat pyproject.toml) | cksum | cut -d' ' -f1)
BENCH := $(BENCH_VENV)/.bench-$(call lock,requirements/core.txt requirements/bench.txt)

.PHONY: demo test check bench web serve site lock clean

demo: $(HERE) ## the main job on generated pictures, offline after the set-up
	$(BIN)/lookalike demo

test: $(TEST) $(HERE) web ## every test
	$(BIN)/python -m pytest -q

serve: $(HERE) web ## the web app over the demo catalogue
	@test -d demo/demo-0.la || $(BIN)/lookalike demo -q
	$(BIN)/lookalike serve demo/demo-0.la

web: ## the web app, where Node is; without it everything else works
	@if command -v npm >/dev/null; then \
	  test web/node_modules/.package-lock.json -nt web/package-lock.json || npm ci --prefix web --no-audit --no-fund --silent; \
	  npm run --prefix web --silent build -- --logLevel error; \
	else echo "Node is not installed: the web app is left out and its tests are skipped"; fi

site: $(TEST) $(HERE) ## the documents as a site in build/site; a broken link or anchor is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

check: $(TEST) $(HERE) ## everything a commit must pass: format, lint, types, layers, tests
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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements/core.txt
	@rm -f $(VENV)/.core-* && touch $@

$(HERE): $(CORE)
	@LOOKALIKE_WEB=skip $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@rm -f $(VENV)/.project-* && touch $@

$(TEST): $(CORE) requirements/test.txt
	@echo "adding what the tests need (torch and every extra: several gigabytes, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@rm -f $(VENV)/.test-* && touch $@

$(BENCH): requirements/core.txt requirements/bench.txt
	$(PYTHON) scripts/require_python.py
	test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt -r requirements/bench.txt
	LOOKALIKE_WEB=skip $(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	rm -f $(BENCH_VENV)/.bench-* && touch $@
