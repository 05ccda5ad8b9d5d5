# One verb per chore. Everything runs in an environment of its own, made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-long check bench clean

demo: $(VENV)/installed            ## the main job on real text
	$(BIN)/coalmine demo

test: $(VENV)/installed-dev        ## every test but the long ones
	$(PYTEST) -m "not long"

test-long: $(VENV)/installed-dev   ## whole studies killed, resumed and repeated; a real language model
	$(PYTEST) -m long

check: $(VENV)/installed-dev       ## format, lint, types, rooms
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-dev       ## every promise of speed, as ratios in one run
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Coalmine needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): some minutes, mostly for torch and ray"
	$(PIP) --editable '.[pii,utility]'
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) --editable '.[dev]'
	$(BIN)/coalmine models add smollm2
	touch $@
