"""Pages run before Sphinx reads them, and what their cells printed is kept.

A page runs again when its cells have changed, a module of the library that they import, directly or through another,
a file that they name, or the versions of Python and torch. What was printed lies in ``_build/executed``. MyST-NB's own
cache looks at the cells alone, so after a change in ``src/`` it would show old output.

One page more runs at once than there are cores. A cell with the tag ``measures`` has the machine alone.
"""

import ast
import functools
import hashlib
import os
import queue
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
from importlib.metadata import version
from pathlib import Path

import nbformat
import traitlets
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from jupyter_client.manager import AsyncKernelManager
from myst_nb.core.execute import direct
from myst_nb.core.read import create_nb_reader
from sphinx.util import logging

from ringzero.ranks import lending

LIBRARY = Path(__file__).resolve().parents[2] / "src"
SAYS = logging.getLogger(__name__)
results: dict[str, ExecutionResult] = {}  # of this build, by key


def setup(app):
    app.connect("env-get-outdated", pages_that_changed)
    app.connect("env-before-read-docs", run_ahead)
    direct.single_nb_execution = as_it_ran  # what MyST-NB calls for each page that it reads
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pages_that_changed(app, env, added, changed, removed):
    """Sphinx looks at the text of pages only. Called before it decides which to read."""
    keys = {page: key_of(notebook) for page in env.found_docs if (notebook := notebook_of(env, page))}
    before, env.keys_of_pages = (
        getattr(env, "keys_of_pages", {}),
        keys,
    )  # kept with the environment if the build ends well
    return [page for page, key in keys.items() if before.get(page) != key]


def run_ahead(app, env, pages):
    """Run those of the ``pages`` whose output is not kept, one more at once than there are cores."""
    kept, turns = Path(app.outdir).parent / "executed", Turns()
    kept.mkdir(parents=True, exist_ok=True)
    jobs = []
    for page in sorted(pages):
        if notebook := notebook_of(env, page):
            stored = kept / f"{page}-{(key := key_of(notebook))}.ipynb"
            if stored.is_file():
                results[key] = ExecutionResult(nbformat.read(stored, 4), "", 0.0)
            else:
                jobs.append((page, notebook, key))

    def run(job):
        page, notebook, key = job
        turn = Turn(turns)
        with turn:
            result = single_nb_execution(
                notebook,
                cwd=str(app.srcdir),
                timeout=env.mystnb_config.execution_timeout,
                allow_errors=False,
                extra_arguments=["--IPKernelApp.log_level=ERROR"],
                kernel_manager_class=WithoutPorts,
                on_cell_execute=turn.of_cell,
                on_cell_executed=turn.between,
            )
        results[key] = result
        SAYS.info(f"{page} {'stopped' if result.err else 'ran'} after {turn}")
        if result.err is None:
            for old in kept.glob(f"{page}-{'[0-9a-f]' * len(key)}.ipynb"):
                old.unlink()
            nbformat.write(notebook, kept / f".{page}.part")
            (kept / f".{page}.part").rename(kept / f"{page}-{key}.ipynb")

    jobs.sort(key=lambda job: -sum(len(cell.source) for cell in job[1].cells if cell.cell_type == "code"))
    # The long ones first, so that no core is left alone with one at the end; and one more than there are cores, since a
    # page also waits: for ranks that start, for messages, for its turn.
    with lending.to_children():
        in_threads(run, jobs, (os.cpu_count() or 1) + 1)


class WithoutPorts(AsyncKernelManager):
    """A kernel behind socket files: of kernels and ranks that start at once, two may take the same port."""

    @traitlets.default("transport")
    def _files(self):
        return "ipc"

    @traitlets.default("connection_file")
    def _short_and_its_own(self):
        folder = tempfile.gettempdir()
        return f"{folder if len(folder) < 60 else '/tmp'}/rz-page-{uuid.uuid4().hex[:12]}.json"


class Turns:
    """Who runs: some cells of as many pages, or one that measures."""

    def __init__(self):
        self.changed, self.running, self.measuring, self.waiting = threading.Condition(), 0, False, 0

    def begin(self, measures):
        with self.changed:
            self.waiting += measures  # one that waits to measure goes before others
            if measures:
                self.changed.wait_for(lambda: not self.running and not self.measuring)
            else:
                self.changed.wait_for(lambda: not self.waiting and not self.measuring)
            self.waiting -= measures
            self.measuring, self.running = measures, self.running + (not measures)

    def end(self, measures):
        with self.changed:
            self.measuring, self.running = False, self.running - (not measures)
            self.changed.notify_all()


class Turn:
    """What one page has of the ``turns``. Its start, when a kernel imports much, is as a cell that does not measure."""

    def __init__(self, turns):
        self.turns, self.measures = turns, None  # None: it has no turn now
        self.waited, self.ran = 0.0, {False: 0.0, True: 0.0}  # seconds; ran by whether it measured

    def begin(self, measures):
        self.between()
        asked = time.monotonic()
        self.turns.begin(measures)
        self.measures, self.began = measures, time.monotonic()
        self.waited += self.began - asked

    def between(self, **_):
        if self.measures is not None:
            self.turns.end(self.measures)
            self.ran[self.measures] += time.monotonic() - self.began
            self.measures = None

    def __str__(self):
        more = f", {self.ran[True]:.1f} s of it alone" if self.ran[True] else ""
        return f"{sum(self.ran.values()):.1f} s{more}; it waited {self.waited:.1f} s"

    def of_cell(self, cell, **_):
        self.begin("measures" in cell.metadata.get("tags", ()))

    def __enter__(self):
        self.begin(False)

    def __exit__(self, *_):
        self.between()


def as_it_ran(notebook, **how):
    """As ``single_nb_execution``, with what ``run_ahead`` has of a notebook with the same cells."""
    result = results.get(key_of(notebook))
    if result is None:
        return single_nb_execution(notebook, **how)
    notebook.metadata.update(result.nb.metadata)
    for cell, ran in zip(notebook.cells, result.nb.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
    return result


def in_threads(run, jobs, count):
    """The threads are daemons: Ctrl-C ends the build at once, and kernels end with the process that started them."""
    waiting, errors = queue.SimpleQueue(), []
    for job in jobs:
        waiting.put(job)

    def work():
        while True:
            try:
                run(waiting.get_nowait())
            except queue.Empty:
                return
            except Exception as error:  # raised below, by the thread that builds
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(count, len(jobs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


# ---- what a page depends on


def notebook_of(env, page):
    """The page as a notebook that has not run, or None if it has no cells."""
    path = env.doc2path(page)
    text = Path(path).read_text(encoding="utf-8")
    reader = create_nb_reader(path, env.myst_config, env.mystnb_config, text)
    return reader and reader.read(text)


def key_of(notebook):
    return key_of_cells(tuple(cell.source for cell in notebook.cells if cell.cell_type == "code"))


@functools.cache
def key_of_cells(cells):
    digest = hashlib.sha256(f"{sys.version} {version('torch')} {shutil.which('ip') is not None}".encode())
    for cell in cells:
        digest.update(f"{len(cell)} {cell}".encode())
    for path in sorted(files_of(cells)):
        digest.update(f"{path.name} ".encode() + path.read_bytes())
    return digest.hexdigest()[:20]


def files_of(cells):
    """The files that cells depend on: modules of the library, what lies beside these, and files of the book."""
    found, left = set(), set()
    for cell in cells:
        modules, texts = names_in("\n".join(line for line in cell.splitlines() if not re.match(r"\s*[%!]", line)))
        left |= modules
        book = LIBRARY.parent / "book"
        found |= {path for text in texts if (path := book / text).is_file()}
        found |= {path for text in texts if re.fullmatch(r"\w+/\*\.json", text) for path in book.glob(text)}
    seen = set()
    while left:
        seen.add(module := left.pop())
        path = file_of(module)
        found.add(path)
        if path.name == "__init__.py":
            found |= {data for data in path.parent.iterdir() if data.is_file() and data.suffix != ".py"}
        left |= names_in(path.read_text())[0] - seen
    return found


@functools.cache
def names_in(source):
    """Modules of the library that a source imports or names, each with the packages it lies in; and all its texts.

    Some are only named: what torchrun starts, and what ``ringzero`` imports when it is asked for.
    """
    names, texts = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    names |= {text for text in texts if re.fullmatch(r"ringzero(_course)?(\.\w+)+", text)}
    with_packages = {name[: m.start()] for name in names for m in re.finditer(r"\.|$", name)}
    return {name for name in with_packages if file_of(name)}, {
        text for text in texts if 0 < len(text) < 100 and "\0" not in text
    }


@functools.cache
def file_of(module):
    if module.split(".")[0] in ("ringzero", "ringzero_course"):
        path = LIBRARY.joinpath(*module.split("."))
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return file
    return None
