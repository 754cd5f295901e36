# `make course` on a fresh machine: everything a reader, student or instructor needs. `make test`: what CI runs.
PYTHON ?= python3
SYSTEM_PYTHON := $(shell command -v $(PYTHON))
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Some containers set it. Then each process compiles torch anew, and its import takes three times as long.
unexport PYTHONDONTWRITEBYTECODE
# Of another environment that is activated where make is called; IPython then warns of it.
unexport VIRTUAL_ENV
TESTS := -n 3 --dist loadscope --no-loadscope-reorder
STEP := "$(SYSTEM_PYTHON)" src/one_at_a_time.py

.DEFAULT_GOAL := course
.NOTPARALLEL:
.PHONY: course install labs lab class book slides pdf release test quick nightly newest checks gpu lock clean

course: labs class book
	@echo
	@echo "The labs:   make lab   (JupyterLab, open on labs/)"
	@echo "The class:  sample_class/course/    (submitted, autograded, feedback; nbgrader's own layout)"
	@echo "The site:   _build/html/index.html"

install:
	@test -n "$(SYSTEM_PYTHON)" || { echo "make: '$(PYTHON)' is not on the PATH. Install Python 3.11 or newer, or say which: make PYTHON=/path/to/python3.12"; exit 1; }
	@"$(SYSTEM_PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $$("$(SYSTEM_PYTHON)" --version 2>&1) is too old; the course needs Python 3.11 or newer. Say which: make PYTHON=/path/to/python3.12"; exit 1; }
	@$(STEP) "$(SYSTEM_PYTHON)" src/install.py $(if $(filter file,$(origin PYTHON)),,--this-python)

labs: install
	@$(STEP) $(BIN)/python -m ringzero_course.grading.build_labs
	@echo "The labs are ready: 'make lab' in another terminal opens them."

lab: labs
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.default_url=/lab/tree/labs

class: install
	@echo "Grading three sample submissions, one of which hangs: about a minute."
	@$(STEP) $(BIN)/python -m ringzero_course.authoring.sample_class --only perfect partly_right hangs

book: install
	@echo "Running and building the pages: about five minutes the first time; later those that changed."
	@$(STEP) $(BIN)/jupyter-book build book/ $(STRICTLY)
	@echo "The site is ready: _build/html/index.html"

slides: book
	@$(STEP) $(BIN)/python book/_ext/slides.py

pdf: book
	@$(STEP) $(BIN)/python book/_ext/pdf.py

release: labs book
	@$(STEP) $(BIN)/python src/release.py

# All, or those of a room or of a lab: make test ROOM=zero, make test LAB=06.
ROOM_TESTS = $(if $(ROOM),tests/$(ROOM))
LAB_NAME = $(or $(basename $(notdir $(wildcard solutions/$(LAB)_*.py))),$(error there is no lab $(LAB) in solutions/; LAB=06 is 06_zero))
LAB_TESTS = $(if $(LAB),tests/lab -k "lab_$(LAB) or $(LAB_NAME)")
test: $(if $(ROOM)$(LAB),install,checks)
	$(BIN)/python -m pytest $(TESTS) $(ROOM_TESTS) $(LAB_TESTS)

quick: install
	$(BIN)/python -m pytest $(TESTS) --quick

nightly: checks book
	$(BIN)/python -m pytest $(TESTS) --thorough

# A few tests of each room with torch's newest release, beside .venv; of a nightly build with
# make newest TORCH="--pre torch --index-url https://download.pytorch.org/whl/nightly/cpu".
NEWEST := $(CURDIR)/_build/newest
TORCH ?= torch
newest: install
	$(BIN)/python -m venv --clear $(NEWEST)
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" > "$$(echo $(NEWEST)/lib/python*/site-packages)/beside.pth"
	$(NEWEST)/bin/python -m pip install --quiet --upgrade $(TORCH)
	$(NEWEST)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable . --editable src/ringzero_course
	PATH="$(NEWEST)/bin:$$PATH" JUPYTER_PATH="$(CURDIR)/.venv/share/jupyter" $(NEWEST)/bin/python -m pytest $(TESTS) --quick

checks: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

gpu: install
	@$(STEP) $(BIN)/python -m ringzero.measure.gpu

lock: install
	$(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 --no-header --no-annotate requirements.txt -o constraints.txt

clean:
	rm -rf _build
