# The same commands for people and for CI. Needs Python 3.11 or later, make and git.
#
#   make demo     a coding agent runs as a step of a flow, offline         ARGS="--policy reject"
#   make test     the whole test suite                                     ARGS="tests/plan -x"
#   make check    formatting, lint, both type checkers, import law, doctests
#   make docs     run every example in the documents and docstrings
#   make bench    what the engine costs over plain asyncio, and the agent's block over its SDK
#   make peers    what a step costs in other libraries, each in an environment of its own (network)
#   make soak     the property and live tests again, for much longer
#   make format   let ruff format and tidy the code
#
# PYTHON=/path/to/python3.12 chooses the interpreter of a new .venv; WORKERS=4 the test processes.

SHELL := /bin/sh
.DEFAULT_GOAL := test
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORKERS ?= 2
ARGS ?=
CANDIDATES := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python

.PHONY: demo test check docs bench peers soak format clean

demo: $(INSTALLED)
	@$(BIN)/flowstate demo $(ARGS)

test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python -p pyproject.toml
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q --doctest-modules flowstate

docs: $(INSTALLED)
	$(BIN)/python -m pytest -q tests/test_documents.py tests/test_examples.py
	$(BIN)/python -m pytest -q --doctest-modules flowstate

bench: $(INSTALLED)
	$(BIN)/python bench/engine.py $(ARGS)
	$(BIN)/python bench/claude_code.py $(ARGS)

peers: $(INSTALLED)
	$(BIN)/python bench/peers.py $(ARGS)

soak: $(INSTALLED)
	FLOWSTATE_SOAK=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup tests/properties tests/live tests/run tests/request tests/blocks $(ARGS)

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# Made once, and brought up to date when pyproject.toml changes.
$(INSTALLED): pyproject.toml
	@set -e; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  found=; \
	  for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      found="$$candidate"; break; \
	    fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "flowstate needs Python 3.11 or later and found none (tried: $(CANDIDATES))." >&2; \
	    echo "Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
	    exit 1; \
	  fi; \
	  if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
	    echo "$$found has no venv module. On Debian and Ubuntu: apt install python3-venv" >&2; \
	    exit 1; \
	  fi; \
	  echo "Making $(VENV) with $$("$$found" --version) ..." >&2; \
	  rm -rf $(VENV); \
	  "$$found" -m venv $(VENV); \
	fi; \
	echo "Installing flowstate, its extras and the tools into $(VENV) (a minute the first time) ..." >&2; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"; \
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all]" --group dev; \
	touch $@
