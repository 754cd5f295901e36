# `make course` on a fresh machine: everything a reader, student or instructor needs. `make test`: what CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := course
.PHONY: course book labs lab class test install clean

course: book labs class
	@echo
	@echo "The site:   _build/html/index.html"
	@echo "The labs:   make lab   (JupyterLab, open on labs/)"
	@echo "The class:  course/    (submitted, autograded, feedback; nbgrader's own layout)"

install: $(VENV)/installed

$(VENV)/installed: requirements.txt constraints.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: '$(PYTHON)' is not on the PATH. Install Python 3.11 or newer, or say which: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $$($(PYTHON) --version) is too old; the course needs Python 3.11 or newer. Say which: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: this Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.txt -c constraints.txt || { echo "make: pip could not install requirements.txt. If it names a connection, check that this machine reaches a package index (pip config list), then run make again: what is installed is kept."; exit 1; }
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

book: install
	$(BIN)/jupyter-book build book/

labs: install
	$(BIN)/python -m ringzero.grading.build_labs

lab: labs
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/labs

class: install
	$(BIN)/python -m ringzero.grading.course

test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder

clean:
	rm -rf _build
