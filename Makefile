# `make demo` and `make test` need nothing but Python 3.11+, make and a package index.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-flower test-python lint types docs release bench reproduce reproduce-smoke clean lock

help:  ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

install: $(STAMP)  ## set up .venv with the package and everything it needs here

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("fedcoast needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	touch $(STAMP)

demo: install  ## train a real federation, assess and rank it, write a report
	$(BIN)/fedcoast demo

test: install  ## the tests
	$(BIN)/python -m pytest -n auto --dist worksteal

test-all: install  ## the tests, slow ones included
	$(BIN)/python -m pytest -n auto --dist loadfile -m ''

test-flower: install  ## the Flower tests and the quickstart with the oldest and the newest Flower
	.ci/flower-versions

test-python: install  ## what needs no PyTorch and no framework, with Python 3.12 and 3.13 where they are installed
	.ci/python-versions

lint: install  ## ruff, and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

lock: install  ## write requirements.lock, the pins of constraints.txt with the hashes of their files
	$(BIN)/uv pip compile constraints.txt --generate-hashes --no-deps --no-header --no-annotate --python-version 3.11.7 --output-file requirements.lock --quiet

types: install  ## mypy, strict
	$(BIN)/mypy

docs: export NO_MKDOCS_2_WARNING = 1
docs: export PYTHONWARNINGS = ignore::DeprecationWarning
docs: install  ## the documentation site, into build/site; any warning fails
	$(BIN)/mkdocs build --strict --quiet

release: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
release: install  ## wheel and sdist into dist/, checked; the same commit gives the same bytes
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*
	sha256sum dist/*

bench: install  ## speed, as ratios measured side by side
	$(BIN)/python -m benchmarks

reproduce: install  ## the paper's tables from the runs in runs/, training what is missing (days)
	$(BIN)/python -m paper all --images docs/images/tables --page README.md --page docs/replication.md --page docs/default.md

reproduce-smoke: install  ## every table's code on little federations of digits (minutes)
	rm -rf results/smoke
	$(BIN)/python -m paper all --preset smoke --seeds 2 --runs results/smoke/runs

clean:  ## remove what make made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist
