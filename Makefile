# The commands of the project. Each one makes its own virtual environment in .venv and installs
# what it needs; all that has to be there is make and Python 3.11 or newer:
#
#     make demo        find the dimensions of handwritten digits and write a page to explore them
#     make test        lint, types, tests
#     make test-all    the same, with the long tests, the documentation, oldest versions and the wheel
#     make lint        lint and types only
#     make test-oldest the tests with the lowest version of every library that is allowed
#     make test-wheel  the tests against a wheel that is built and installed for it
#     make docs        the documentation, into docs/_build/html
#     make pictures    the pictures in docs/images that the README and the pages show
#     make bench       the benchmarks
#     make reproduce   an analysis of the paper: NAME=recovery OPTIONS="--quick --data DIR"
#     make clean       remove what these commands made, .venv included
#
# Another interpreter: make test PYTHON=python3.12. Fewer test processes: make test WORKERS=1.

PYTHON ?= python3
WORKERS ?= auto

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
PYTEST := $(PY) -m pytest
CORE := $(VENV)/.installed-core
TEST := $(VENV)/.installed-test
DOCS := $(VENV)/.installed-docs
OLDEST := build/oldest

# The test processes share the cores between them, so BLAS and OpenMP get one thread in each; tests
# about threads set their own numbers.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1
PARALLEL := -n $(WORKERS) --maxprocesses 8

.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-oldest test-wheel lint docs pictures bench reproduce clean

help:
	@sed -n 's/^#     //p' Makefile

demo: $(CORE)
	$(VENV)/bin/simdims demo

test: lint
	$(ONE_THREAD) $(PYTEST) $(PARALLEL)

test-all: lint docs
	$(ONE_THREAD) $(PYTEST) $(PARALLEL) -m "slow or not slow"
	$(ONE_THREAD) $(PY) .ci/mutations.py by-hand
	$(MAKE) test-oldest test-wheel

test-oldest: | $(PY)
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip --disable-pip-version-check --quiet install --constraint .ci/oldest.txt --editable ".[test]"
	$(ONE_THREAD) NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/numba $(OLDEST)/bin/python -m pytest $(PARALLEL)

test-wheel: $(TEST)
	$(PIP) install build
	rm -rf dist
	$(PY) -m build
	$(ONE_THREAD) $(PY) .ci/test_wheel.py dist

lint: $(TEST)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

docs: $(DOCS)
	$(PY) -m sphinx -b html -d docs/_build/doctrees -W --keep-going -n docs docs/_build/html

pictures: $(TEST)
	$(PY) docs/pictures.py

bench: $(CORE)
	$(PY) benchmarks/bench_rivals.py
	$(PY) benchmarks/bench_fit.py
	$(PY) benchmarks/bench_small.py
	$(PY) benchmarks/bench_scale.py
	$(PY) benchmarks/bench_construct.py
	$(PY) benchmarks/bench_selection.py speed
	$(PY) benchmarks/bench_consensus.py
	OMP_NUM_THREADS=1 $(PY) benchmarks/bench_inference.py

reproduce: $(CORE)
	$(PY) -m paper $(or $(NAME),list) $(if $(NAME),-o paper/results) $(OPTIONS)

clean:
	rm -rf $(VENV) demo_output build dist benchmarks/results paper/results docs/_build
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

$(CORE): pyproject.toml | $(PY)
	@echo "Installing simdims and what it needs into $(VENV) (once; it may take a few minutes) ..."
	@$(PIP) install --editable ".[plot,report]"
	@touch $@

$(TEST): pyproject.toml | $(PY)
	@echo "Installing simdims, what it needs and the test tools into $(VENV) (once; it may take a few minutes) ..."
	@$(PIP) install --editable ".[test]"
	@touch $(CORE) $@

$(DOCS): pyproject.toml | $(PY)
	@echo "Installing simdims and what builds its documentation into $(VENV) (once; it may take a few minutes) ..."
	@$(PIP) install --editable ".[docs]"
	@touch $(CORE) $@

$(PY):
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "simdims needs Python 3.11 or newer, and \"$(PYTHON)\" is not: name one that is, as in make PYTHON=python3.12." >&2; \
	  exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "\"$(PYTHON)\" has no venv module: install it (on Debian and Ubuntu the package python3-venv) or name another Python, as in make PYTHON=python3.12." >&2; \
	  exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
