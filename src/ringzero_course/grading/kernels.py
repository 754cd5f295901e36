"""The kernels of a submission: papermill's client, with a deadline, in boxes.

With ``sandbox``, the default, the student's cells run in a kernel in a box, the instructor's test cells in another one,
where no cell of the student ever ran; they reach the student's functions as ``lab/handle.py`` says, and call them in
another box: on ranks, or with ``lab/apart.py``. Locked cells without points, which both need, run in both. Without, one
kernel runs all cells.

Whatever happens to the student's kernel becomes outputs that nbgrader scores: a kernel that dies or cannot be stopped
costs the cell it happened in and the cells after it; the grades before it stand.
"""

import asyncio
import logging
import shutil
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import zmq
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbclient.util import run_sync
from nbgrader import utils
from papermill.engines import Engine, papermill_engines

from ringzero.processes import die_with_parent
from ringzero_course.boxes import sandbox
from ringzero_course.boxes.faults import GraderFault
from ringzero_course.boxes.fence import MARK
from ringzero_course.grading import verdict
from ringzero_course.grading.messages import UNREADABLE, CarefulClient
from ringzero_course.grading.provisioner import BoxedKernelManager
from ringzero_course.grading.settle import add_error

ENGINE = "ringzero-grading"
STUDENT, TESTS, RANKS = "student", "tests", "ranks"  # folders: of the kernels' files, and of all that ranks write
INTERRUPT_SECONDS = 5  # how long an interrupted cell has to stop before the kernel is killed
# Where all ranks of checks would import the same thing, they start with it.
RANKS_FOR_CHECKS = """from ringzero.ranks import pool, warm_rank
warm_rank.import_once(["ringzero_course.lab.checks"])
pool.acquire(1, optimizers={optimizers})
del pool, warm_rank"""
ANSWER_SECONDS = 30  # for a kernel between two cells to say that it is there
LAST_RESORT_SECONDS = 30  # after the notebook's time, for a kernel that keeps its reader from looking at the clock
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


def is_injected(cell):
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


class GradingClient(CarefulClient):
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
                    optimizers = any("optim." in cell.source for cell in self.nb.cells)
                    self._run_silently(RANKS_FOR_CHECKS.format(optimizers=optimizers))  # while students' cells run
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
                f"from ringzero_course.lab import hidden\nhidden.secret = {self.settings.seal!r}\ndel hidden"
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
            self._keep_outputs_alone(cell, number)

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
            self._begin_to_read()
            self._stopped = False
            number = self.code_cells_executed + 1
            if over:
                add_error(cell, "NotRun", f"NOT RUN: {over}")
                continue
            self.nb_man.cell_start(cell, index)
            try:
                if is_injected(cell):  # without a number, so that the student's cells keep theirs
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
        add_error(cell, name, sentence)
        self.notes.append((kind, sentence))

    def _note_timeout(self, cell, cell_index, execute_reply):
        if execute_reply["content"].get("ename") != "TimeLimit":
            return
        self._stopped = True
        limit = min(self.settings.cell_seconds, self.settings.notebook_seconds)
        sentence = f"TIME LIMIT in cell [{self.code_cells_executed}]: stopped, at most {limit:g} s"
        self._end(cell, self.code_cells_executed, verdict.LIMIT, "TimeLimit", sentence)


async def _all_ready(clients, seconds):
    await asyncio.gather(*(client.wait_for_ready(timeout=seconds) for client in clients))
