"""Run a submission's cells with papermill, under a clock of the grader's own.

With ``sandbox``, the default, the student's cells run in a kernel in a box, the instructor's test cells in another one,
where no cell of the student ever ran; they reach the student's functions as ``lab/handle.py`` says, and call them in
another box: on ranks, or with ``lab/apart.py``. Locked cells without points, which both need, run in both. Without, one
kernel runs all cells.

``ExecuteWithPapermill`` stands where nbgrader has ``Execute``. It injects the parameters, runs the notebook in scratch
folders, and turns whatever happens to the student's kernel into outputs that nbgrader scores: a kernel that dies or
cannot be stopped costs the cell it happened in and the cells after it; the grades before it stand. What it says
about the notebook goes to ``resources["ringzero_verdict"]``.
"""

import asyncio
import copy
import logging
import math
import re
import shutil
import signal
import subprocess
import threading
import time
from ast import literal_eval
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import zmq
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbclient.util import run_sync
from nbformat import ValidationError
from nbformat import validate as validate_format
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from traitlets import Bool, Dict, Float, Integer, TraitError, Unicode, default, validate

from ringzero.grading import readable, verdict, withheld
from ringzero.grading import seal as seals
from ringzero.grading.provisioner import BoxedKernelManager
from ringzero.processes import die_with_parent, sandbox
from ringzero.processes.disk_watch import DiskWatch
from ringzero.processes.faults import GraderFault
from ringzero.processes.fence import MARK, Fence, why_no_room

ENGINE = "ringzero-grading"
STUDENT, TESTS, RANKS = "student", "tests", "ranks"  # folders: of the kernels' files, and of all that ranks write
INTERRUPT_SECONDS = 5  # how long an interrupted cell has to stop before the kernel is killed
# Where all ranks of checks would import the same thing, they start with it.
RANKS_FOR_CHECKS = """from ringzero.ranks import pool, warm_rank
warm_rank.import_once(["ringzero.lab.checks"])
pool.wished.add("ringzero.lab.on_rank")
pool.acquire(1)
del pool, warm_rank"""
STOP_PRINTING = 20  # a cell that printed this many times the output limit is interrupted at once
SIGNS = {  # words in the reasons of a check's table, or in its error, that mean more than a wrong result
    verdict.LIMIT: re.compile(r"no end after \d+ s: .*"),
    verdict.STUDENT: re.compile(r"rank \d+ (raised|was ended by|ended with exit|was killed) .*"),
    verdict.TAMPERING: re.compile(r"\S+ cannot be had: the notebook's kernel gave something else for it .*"),
}
MOST_UNREADABLE = 100  # messages of a cell
ANSWER_SECONDS = 30  # for a kernel between two cells to say that it is there
LAST_RESORT_SECONDS = 30  # after the notebook's time, for a kernel that keeps its reader from looking at the clock
KILLED = re.compile(r"KERNEL DIED in cell \[\d+\] \(SIGKILL\)")  # a note
SHOWN = ("stream", "display_data", "execute_result", "update_display_data", "error")  # messages that are outputs
DEVICES = ("auto", "cpu", "cuda", "strict")  # that a lab takes
# What is read of a cell. Not the messages of widgets: they could have the grader keep, hide and send what they like.
READ = (*SHOWN, "status", "execute_input", "clear_output")
# What a reader of messages raises where they are not as the kernel's protocol has them.
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, TraitError, ValidationError)

# nbclient logs that it stopped a cell, without the student's name. The verdict says it with the name.
_nobody_reads = logging.getLogger(__name__)
_nobody_reads.addHandler(logging.NullHandler())
_nobody_reads.propagate = False


@dataclass(frozen=True)
class Settings:
    """How to run a notebook: the traits of ``ExecuteWithPapermill``. ``box`` is None where there are no boxes."""

    parameters: dict
    cell_seconds: float
    notebook_seconds: float
    output_bytes: int
    box: sandbox.Limits | None
    seal: str = ""


class FromWords(Dict):
    """A ``Dict`` that a command line gives as ``NAME=VALUE``, once for each; a value may be a number or a boolean."""

    def item_from_string(self, word):
        name, equals, text = word.partition("=")
        if not equals:
            raise TraitError
        try:
            return {name: literal_eval(text)}
        except (ValueError, SyntaxError):
            return {name: text}

    def validate(self, obj, value):
        if isinstance(value, str | list):  # a command line's, which is not of that form
            option = f"{type(obj).__name__}.{self.name}"
            raise TraitError(f"{option} is {value!r}; a command line says --{option}=NAME=VALUE, once for each name")
        return super().validate(obj, value)


class ExecuteWithPapermill(NbGraderPreprocessor):
    """Run the notebook; see the module's docstring.

    A setting that cannot be used raises TraitError, with its value and what it may be. What is not said of
    ``parameters`` and ``limits`` has its default: two ways to say the same are equal when they are read.
    """

    parameters = FromWords(
        {"WORLD_SIZE": 4, "DEVICE": "auto"}, help="What papermill injects after the cell tagged `parameters`."
    ).tag(config=True)
    cell_seconds = Float(120.0, help="Wall-clock limit of a cell, in seconds.").tag(config=True)
    notebook_seconds = Float(300.0, help="Wall-clock limit of a whole notebook, in seconds.").tag(config=True)
    output_bytes = Integer(1_000_000, min=1, help="What a cell may print; the rest is dropped.").tag(config=True)
    limits = FromWords(
        asdict(sandbox.Limits()), help="What processes may take, as in `ringzero.processes.sandbox.Limits`."
    ).tag(config=True)
    sandbox = Bool(
        True, help="Run submissions in sandboxes, and test cells, which use `Check`, in a kernel of their own."
    ).tag(config=True)

    seal = Unicode(help="What the numbers of hidden cases follow from; see `ringzero seal`.").tag(config=True)

    @default("enabled")
    def _enabled_default(self):  # `nbgrader autograde --no-execute` disables the stock preprocessor by its name
        return Execute(parent=self).enabled

    @default("seal")
    def _seal_default(self):
        return seals.of(Path(CourseDirectory(parent=self).root))

    @validate("parameters")
    def _whole_parameters(self, proposal):
        return whole_parameters(self.trait_defaults("parameters") | proposal["value"])

    @validate("limits")
    def _whole_limits(self, proposal):
        return whole_limits(proposal["value"])

    @validate("cell_seconds", "notebook_seconds")
    def _some_seconds(self, proposal):
        value = proposal["value"]
        if not 0 < value < threading.TIMEOUT_MAX:
            raise TraitError(f"{proposal['trait'].name} is {value:g}; it is a number of seconds over 0, such as 120")
        return value

    def settings(self):
        box = sandbox.Limits(**self.limits) if self.sandbox else None
        limits = self.cell_seconds, self.notebook_seconds, self.output_bytes
        return Settings(dict(self.parameters), *limits, box, self.seal)

    def why_not_here(self):
        """Why these settings, or this machine, grade nothing: a sentence that says what to do. None if they grade."""
        if not self.enabled:
            return (
                "Nothing was graded: a cell that does not run would get full points. Leave out --no-execute "
                "(Execute.enabled and ExecuteWithPapermill.enabled)."
            )
        if not self.sandbox:
            return None
        if self.parameters["DEVICE"] == "cuda" and not self.limits["gpus"]:
            return (
                'Nothing was graded: DEVICE is "cuda", and a sandbox has no GPU. Take "auto", or let sandboxes use the '
                "GPUs: --ExecuteWithPapermill.limits=gpus=True"
            )
        if (missing := sandbox.missing_ability()) is None:
            return None
        what, seen, fix = missing
        return (
            f"Nothing was graded: a sandbox needs {what} ({seen}). {fix}. Or, if you trust each submission with your "
            "files and with its own score, grade without: --ExecuteWithPapermill.sandbox=False on the command line, or "
            "c.ExecuteWithPapermill.sandbox = False in nbgrader_config.py"
        )

    def preprocess(self, nb, resources):
        ran, notes, seconds = (runner.get() or run)(nb, self.settings())
        for cell, after in zip(nb.cells, ran, strict=True):
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = after.outputs, after.execution_count
        notes += settle(nb)
        if ours := [sentence for kind, sentence in notes if kind == verdict.GRADER]:
            raise GraderFault(ours[0])  # no score; the next run grades the submission again
        resources["ringzero_verdict"] = _verdict(notes, seconds)
        return nb, resources


def whole_parameters(parameters):
    """The parameters of a lab. Raises TraitError for what a lab refuses, in each notebook of the class."""
    world_size, device = parameters["WORLD_SIZE"], parameters["DEVICE"]
    which = "ExecuteWithPapermill.parameters"
    if type(world_size) is not int or world_size < 1:
        raise TraitError(f"{which}: WORLD_SIZE is {world_size!r}; it is a number of ranks, from 1, such as 4")
    if device not in DEVICES:
        raise TraitError(f"{which}: DEVICE is {device!r}; it is {', '.join(DEVICES)}")
    if odd := [name for name in parameters if not (isinstance(name, str) and name.isidentifier())]:
        raise TraitError(f"{which}: {odd[0]!r} is no name that a cell can give to a value")
    return parameters


def whole_limits(given):
    """All limits of a box, by their names. Raises TraitError for one that does not exist or cannot be."""
    known = {field.name: field.type for field in fields(sandbox.Limits)}
    for name, value in given.items():
        if name not in known:
            raise TraitError(f"ExecuteWithPapermill.limits: a sandbox has no limit {name!r}. It has {', '.join(known)}")
        if type(value) is not known[name] or (known[name] is int and value < 1):
            kind = "True or False" if known[name] is bool else "a whole number from 1"
            raise TraitError(f"ExecuteWithPapermill.limits: {name} is {value!r}; it is {kind}")
    return asdict(sandbox.Limits(**given))


# What stands for ``run`` below, if anything does: see ``ahead.py``.
runner: ContextVar[Callable | None] = ContextVar("runner", default=None)


def run(nb, settings):
    """Run a copy of ``nb``: the cells as they came out, what happened as ``[(kind, sentence)]``, the seconds it took.

    A student's kernel that SIGKILL ended may have been ended from outside: then the notebook runs a second time, which
    counts. Raises only for faults of the grader, such as a kernel that does not start, or no room on the disk.
    """
    ran, notes, seconds = _run(nb, settings)
    if any(KILLED.match(sentence) for _, sentence in notes) and verdict.LIMIT not in dict(notes):
        ran, notes, seconds = _run(nb, settings)
    if (why := why_no_room()) is not None:
        raise GraderFault(why)
    return ran, notes, seconds


def _run(nb, settings):
    box = settings.box
    kernel = nb.metadata.get("kernelspec", {}).get("name") or "python3"
    nb = load_notebook_node(_with_a_place_for_parameters(nb))
    nb = parameterize_notebook(nb, dict(settings.parameters), kernel_name=kernel, language="python", engine_name=ENGINE)
    notes = []
    start = time.monotonic()
    with ExitStack() as stack:
        fence = stack.enter_context(Fence())
        if box is not None:
            watches = (
                sandbox.MemoryWatch(box, lambda said: notes.append((verdict.LIMIT, said))),
                DiskWatch(
                    [fence.folder.parent / name for name in (STUDENT, RANKS)],
                    box.temporary,
                    lambda said: notes.append((verdict.LIMIT, said)),
                ),
            )
            for watch in watches:
                stack.enter_context(watch)
        papermill_engines.execute_notebook_with_engine(
            ENGINE,
            nb,
            kernel_name=kernel,
            progress_bar=False,
            fence=fence,
            settings=settings,
            notes=notes,
        )
    seconds = round(time.monotonic() - start, 2)
    return [cell for cell in nb.cells if not _is_injected(cell)], notes, seconds


def _with_a_place_for_parameters(nb):
    """A copy with a cell tagged ``parameters``, and without what papermill injected on a student's machine."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if _is_injected(cell):
            cell.metadata["tags"] = []
            if "nbgrader" not in cell.metadata:
                cell.source = ""
    if not any("parameters" in cell.metadata.get("tags", []) for cell in nb.cells):
        for cell in nb.cells:
            if cell.cell_type == "code" and re.search(r"^WORLD_SIZE\s*=", cell.source, re.MULTILINE):
                cell.metadata["tags"] = ["parameters"]
                break
    return nb


def _is_injected(cell):
    return "injected-parameters" in cell.metadata.get("tags", [])


def runs_in_the_tests_kernel(cell):
    """Whether a cell is the instructor's: a test cell, or a locked one, which runs in the student's kernel, too."""
    return utils.is_locked(cell)


class GradingEngine(Engine):
    """papermill's engine for grading: ``fence``, ``settings`` and ``notes`` as in ``run``."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *, fence, settings, notes, **_):
        client = GradingClient(
            nb_man,
            kernel_name=kernel_name,
            log=_nobody_reads,
            allow_errors=True,
            startup_timeout=600,
            iopub_timeout=INTERRUPT_SECONDS,
            raise_on_iopub_timeout=False,  # zmq may have ended the connection: see ``_connect_anew``
            interrupt_on_timeout=True,
            error_on_timeout={"ename": "TimeLimit", "evalue": "", "traceback": []},
            shutdown_kernel="immediate",
            skip_cells_with_tag="",  # a tag must not get a cell out of running
        )
        client.settings, client.notes, client.fence, client.box = settings, notes, fence, settings.box
        client.execute()


papermill_engines.register(ENGINE, GradingEngine)


class GradingClient(PapermillNotebookClient):
    """nbclient with a deadline for the whole notebook, and with a note where another client would raise.

    With a box there are two kernels. ``km`` and ``kc`` are those of the kernel that runs the next cell: the student's
    but in ``_in_the_tests_kernel``.
    """

    def execute(self):
        self.reset_execution_trackers()
        environment = dict(self.fence.environment)
        self._kernels = []
        try:
            if self.box is None:
                (self._students,) = self._connected(self._start(environment, STUDENT))
                self.km, self.kc = self._students
                self._seal()
            else:
                tests = self._start(environment | self._for_the_tests_kernel(self.box), TESTS)
                students = self._start(environment, STUDENT, boxed=True)
                shutil.copy(students.connection_file, self._how_to_reach_the_students())  # before a cell can change it
                self._tests, self._students = self._connected(tests, students)
                self.km, self.kc = self._tests
                self._seal()
                if any(utils.is_grade(cell) and "Check(" in cell.source for cell in self.nb.cells):
                    self._run_silently(RANKS_FOR_CHECKS)  # meanwhile the student's cells run
                self.km, self.kc = self._students
            self.papermill_execute_cells()
        finally:
            for manager, client in self._kernels:
                self.km, self.kc = manager, client
                self._cleanup_kernel()
        return self.nb

    def _seal(self):
        """In the kernel that is connected now, tests use the course's own hidden cases."""
        if self.settings.seal:
            self._run_silently(
                f"import ringzero.lab.sealed\nringzero.lab.sealed.use({self.settings.seal!r})\ndel ringzero"
            )

    def _start(self, environment, name, boxed=False):
        """Start a kernel whose files are in the folder ``name``, and return its manager."""
        folder = self.fence.folder.parent / name
        folder.mkdir()
        self.kernel_manager_class = BoxedKernelManager if boxed else AsyncKernelManager
        self.km = self.create_kernel_manager()
        if boxed:
            self.km.limits, self.km.marks = self.box, {MARK: environment[MARK]}
        self.km.transport = "ipc"  # no ports: nothing to collide with, nothing to connect to
        self.km.connection_file = str(folder / "kernel.json")
        self.start_new_kernel(
            env=environment,
            cwd=str(self.fence.folder),
            stdout=subprocess.DEVNULL,  # what the cells print comes through the kernel's messages
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        self._kernels.append((self.km, None))
        return self.km

    def _connected(self, *managers):
        """Each kernel's manager and client, when all are ready. A client waits 0.2 s for its kernel to be silent."""
        self._kernels = [(manager, manager.client()) for manager in managers]
        for _, client in self._kernels:
            client.start_channels()
            client.allow_stdin = False
        run_sync(_all_ready)([client for _, client in self._kernels], self.startup_timeout)
        return self._kernels

    def _for_the_tests_kernel(self, box):
        """What the environment of the tests' kernel says more: where the student's is, and which box ranks get."""
        ranks = self.fence.folder.parent / RANKS
        ranks.mkdir()
        more = {sandbox.STUDENTS_KERNEL: str(self._how_to_reach_the_students()), "TMPDIR": str(ranks)}
        return more | sandbox.asking_for(box)

    def _how_to_reach_the_students(self):
        """A copy of the connection file of the student's kernel, where that kernel cannot change it."""
        return self.fence.folder.parent / TESTS / "students_kernel.json"

    @contextmanager
    def _in_the_tests_kernel(self):
        """Inside, cells run in the tests' kernel, numbered as if all cells ran in one."""
        self.km, self.kc = self._tests
        self.kc.execute(f"get_ipython().execution_count = {self.code_cells_executed + 1}", silent=True)
        try:
            yield
        finally:
            self.km, self.kc = self._students

    def _run_where_it_belongs(self, cell, index):
        """Run a cell in the student's kernel, a test cell in the tests', a locked cell without points in both."""
        if self.box is not None and utils.is_grade(cell) and not utils.is_solution(cell):
            if not run_sync(self.km.is_alive)():
                raise DeadKernelError("Kernel died")
            with self._in_the_tests_kernel():
                self.execute_cell(cell, index)
            self.kc.execute("pass")  # the student's kernel counts it, too
            return
        if self.box is not None and runs_in_the_tests_kernel(cell):
            with self._in_the_tests_kernel():
                self._run_silently(cell.source)
        self._run_in_the_students_kernel(cell, index)

    def _run_in_the_students_kernel(self, cell, index, **options):
        """A student's kernel may say anything: what is no message of its protocol is dropped, and noted."""
        number, self._unreadable, self._idle = self.code_cells_executed + 1, 0, False
        try:
            self.execute_cell(cell, index, **options)
            if not self._idle and self.box is not None:
                self._connect_anew()
        finally:
            outputs = cell.outputs
            cell.outputs = [output for output in outputs if _is_output(output)]
            counted = type(cell.execution_count) in (int, type(None))
            if not counted:
                cell.execution_count = None
            if self._unreadable or len(cell.outputs) < len(outputs) or not counted:
                sentence = f"cell [{number}] sent the grader messages that no kernel sends; they are dropped"
                self.notes.append((verdict.TAMPERING, sentence))

    def _connect_anew(self):
        """Where the last message of a cell did not come. zmq ends a connection that had a message over its limit."""
        self.kc.stop_channels()
        self._kernels.remove(self._students)
        self.kc = self.km.client()
        self._students = self.km, self.kc
        self._kernels.append(self._students)
        self.kc.start_channels()
        try:
            run_sync(self.kc.wait_for_ready)(timeout=ANSWER_SECONDS)
        except (RuntimeError, *UNREADABLE):
            raise DeadKernelError("it does not answer") from None
        self.kc.allow_stdin = False

    async def _async_poll_output_msg(self, *of_the_cell):
        while True:
            try:
                return await super()._async_poll_output_msg(*of_the_cell)
            except UNREADABLE:
                self._count_unreadable()

    async def _async_poll_for_reply(self, msg_id, cell, timeout, *tasks):
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.1, deadline - time.monotonic())
            try:
                reply = await super()._async_poll_for_reply(msg_id, cell, left, *tasks)
            except UNREADABLE:
                self._count_unreadable()
                continue
            if not _is_reply(reply["content"]):
                self._count_unreadable()
                reply["content"] = {"status": "ok"}
            return reply

    def _count_unreadable(self):
        """After a message that cannot be read. Only a student's kernel sends such; one that goes on is given up."""
        if self._is_trusted():
            raise RuntimeError("the tests' kernel sent a message that cannot be read")
        self._unreadable += 1
        if self._unreadable > MOST_UNREADABLE:
            raise DeadKernelError("it sends only messages that cannot be read") from None

    def _is_trusted(self):
        """Whether the kernel that runs the cell is no box for a student's code."""
        return self.box is None or self.kc is not self._students[1]

    def _run_silently(self, source):
        self.kc.execute(source, store_history=False)

    def papermill_execute_cells(self):
        self._given_up = False
        last_resort = threading.Timer(self.settings.notebook_seconds + LAST_RESORT_SECONDS, self._give_up)
        last_resort.start()
        try:
            self._execute_cells()
        finally:
            last_resort.cancel()

    def _give_up(self):
        """In a thread: end the student's kernel. It may send so much that nobody comes to look at the clock."""
        self._given_up = True
        manager = self.km if self.box is None else self._students[0]
        manager.provisioner.process.kill()

    def _execute_cells(self):
        self._deadline = time.monotonic() + self.settings.notebook_seconds
        self.timeout_func = lambda _: max(0.1, min(self.settings.cell_seconds, self._deadline - time.monotonic()))
        self.on_cell_error = self._note_timeout
        over = ""  # why the remaining cells do not run
        for index, cell in enumerate(self.nb.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            self._printed, self._stopped, self._told_to_stop = 0, False, False
            number = self.code_cells_executed + 1
            if over:
                _add_error(cell, "NotRun", f"NOT RUN: {over}")
                continue
            self.nb_man.cell_start(cell, index)
            try:
                if _is_injected(cell):  # without a number, so that the student's cells keep theirs
                    if self.box is not None:
                        with self._in_the_tests_kernel():
                            self._run_silently(cell.source)
                    self._run_in_the_students_kernel(cell, index, store_history=False)
                    self.code_cells_executed -= 1
                    continue
                self._run_where_it_belongs(cell, index)
                if self._stopped and time.monotonic() > self._deadline:
                    over = f"the notebook's {self.settings.notebook_seconds:g} s were over in cell [{number}]"
            except (DeadKernelError, zmq.Again):
                if self._given_up:
                    over = f"TIME LIMIT in cell [{number}]: the notebook's kernel was ended"
                    self._end(cell, number, verdict.LIMIT, "TimeLimit", over)
                    continue
                self._blame_nobody_for_the_tests_kernel()
                over = f"KERNEL DIED in cell [{number}]{self._how_the_kernel_ended()}"
                self._end(cell, number, verdict.STUDENT, "KernelDied", over)
            except CellTimeoutError:
                over = f"TIME LIMIT in cell [{number}], which could not be interrupted"
                self._end(cell, number, verdict.LIMIT, "TimeLimit", over)
            finally:
                self.nb_man.cell_complete(cell, cell_index=index)

    def _blame_nobody_for_the_tests_kernel(self):
        """Raise GraderFault if the tests' kernel ended, and not because of what it read of the student's."""
        limited = any(kind == verdict.LIMIT for kind, _ in self.notes)
        if self.box is not None and not limited and not run_sync(self._tests[0].is_alive)():
            raise GraderFault("the kernel of the test cells ended")

    def _how_the_kernel_ended(self):
        process = getattr(self.km.provisioner, "process", None)
        status = process.poll() if process is not None else None
        if status is None:
            return ""
        ended_by = -status if status < 0 else status - 128  # as a box and a shell say it
        known = {each.value: each.name for each in signal.Signals}
        return f" ({known[ended_by]})" if ended_by in known else f" (exit status {status})"

    def _end(self, cell, number, kind, name, sentence):
        cell.execution_count = number
        _add_error(cell, name, sentence)
        self.notes.append((kind, sentence))

    def _note_timeout(self, cell, cell_index, execute_reply):
        if execute_reply["content"].get("ename") != "TimeLimit":
            return
        self._stopped = True
        limit = min(self.settings.cell_seconds, self.settings.notebook_seconds)
        sentence = f"TIME LIMIT in cell [{self.code_cells_executed}]: stopped, at most {limit:g} s"
        self._end(cell, self.code_cells_executed, verdict.LIMIT, "TimeLimit", sentence)

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] not in READ:
            return None
        if msg["msg_type"] == "status" and msg["content"]["execution_state"] == "idle":
            self._idle = True
        if msg["msg_type"] in SHOWN:
            self._printed += sum(len(str(part)) for name, part in msg["content"].items() if name != "name")
            is_kept = self._is_trusted() and msg["msg_type"] in ("execute_result", "error")
            if self._printed > self.settings.output_bytes and not is_kept:
                self._drop_output(cell)
                if self._printed > STOP_PRINTING * self.settings.output_bytes and not self._told_to_stop:
                    self._told_to_stop = True
                    self._interrupt()
                return None
        return super().process_message(msg, cell, cell_index)

    def _interrupt(self):
        provisioner = self.km.provisioner
        if hasattr(provisioner, "interrupt"):
            provisioner.interrupt()
        else:
            provisioner.process.send_signal(signal.SIGINT)

    def _drop_output(self, cell):
        number, limit = self.code_cells_executed, self.settings.output_bytes
        sentence = f"OUTPUT LIMIT in cell [{number}]: all after {limit} bytes is dropped"
        if (verdict.LIMIT, sentence) not in self.notes:
            self.notes.append((verdict.LIMIT, sentence))
            cell.outputs.append(new_output("stream", name="stdout", text=f"\n{sentence}\n"))


async def _all_ready(clients, seconds):
    await asyncio.gather(*(client.wait_for_ready(timeout=seconds) for client in clients))


def settle(nb):
    """Change outputs that nbgrader would score wrongly; return what was found, as ``[(kind, sentence)]``.

    nbgrader gives full marks to a test cell that did not run, or that ended in something that is no number, and
    none to one with a line of library noise on stderr.
    """
    notes = []
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        where = f"cell [{cell.execution_count or '-'}]"
        error = next((output for output in cell.outputs if output.output_type == "error"), None)
        if error is not None and utils.is_grade(cell) and error.ename == GraderFault.__name__:
            notes.append((verdict.GRADER, f"{where}: {error.evalue}"))
        elif error is not None and error.ename not in ("NotRun", "KernelDied", "TimeLimit"):
            said = "" if utils.is_grade(cell) else error.evalue  # a test's message may tell what is hidden
            first = f"{error.ename}: {said}".splitlines()[0].rstrip(": ")
            notes.append((verdict.STUDENT, f"{where}: {_shortened(first)}"))
        if not utils.is_grade(cell) or utils.is_solution(cell):
            continue
        for output in cell.outputs:
            if output.output_type == "stream":
                output.name = "stdout"
        notes += [(kind, f"{where}: {sign}") for kind, sign in _signs(cell)]
        if error is None and not _score_is_number(cell):
            _add_error(cell, "NoScore", "The test cell did not end in one number of points, so it scores 0.")
            notes.append((verdict.STUDENT, f"{where}: {cell.metadata.nbgrader.grade_id} did not end in a number"))
        if any(output.output_type == "error" for output in cell.outputs):
            _withdraw_results(cell)
    return notes


def _signs(cell):
    """What a test cell says of hangs, of ranks that failed and of a kernel that lied, each once.

    Not what ranks printed, which is in its outputs, too: a student may print anything.
    """
    texts = [row.reason for table in withheld.read_tables(cell) for row in table.rows]
    texts += [output.evalue for output in cell.outputs if output.output_type == "error"]
    for kind, sign in SIGNS.items():
        found = next(filter(None, map(sign.search, texts)), None)
        if found:
            yield kind, _shortened(found[0])


def _is_output(output):
    """Whether this can stand in a notebook."""
    try:
        validate_format(output, ref="output", version=4, version_minor=5)
        return not readable.why_no_json(output)
    except UNREADABLE:
        return False


def _is_reply(content):
    """Whether this is what a kernel answers after a cell."""
    return content.get("status") in ("ok", "error", "aborted") and type(content.get("ename", "")) is str


def _shortened(text, longest=200):
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _score_is_number(cell):
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    try:
        (result,) = results  # nbgrader scores the first result, which a student's code may have printed
        score = float(result.data["text/plain"])
    except (KeyError, ValueError, TypeError):
        return False
    return math.isfinite(score) and 0 <= score <= float(cell.metadata.nbgrader.points)


def _withdraw_results(cell):
    """nbgrader scores a result even if an error follows it. Keep the result visible, but not as a score."""
    cell.outputs = [
        new_output("display_data", data=output.data) if output.output_type == "execute_result" else output
        for output in cell.outputs
    ]


def _add_error(cell, name, sentence):
    cell.outputs.append(new_output("error", ename=name, evalue=sentence, traceback=[sentence]))


def _verdict(notes, seconds):
    if not notes:
        return verdict.Verdict(verdict.OK, seconds=seconds)
    kind, reason = max(notes, key=lambda note: verdict.KINDS.index(note[0]))
    return verdict.Verdict(kind, reason, [sentence for _, sentence in notes], seconds)
