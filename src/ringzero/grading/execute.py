"""Run a submission's cells with papermill, under a clock of the grader's own.

``ExecuteWithPapermill`` stands where nbgrader has ``Execute``. It injects the parameters, runs the notebook in a
scratch folder, and turns whatever happens to the kernel into outputs that nbgrader scores: a kernel that dies or
cannot be stopped costs the cell it happened in and the cells after it; the grades before it stand. What it says
about the notebook goes to ``resources["ringzero_verdict"]``.
"""

import copy
import math
import re
import signal
import subprocess
import time

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from traitlets import Dict, Float, Integer, default

from ringzero.grading import verdict
from ringzero.processes import die_with_parent
from ringzero.processes.fence import Fence

ENGINE = "ringzero-grading"
INTERRUPT_SECONDS = 5  # how long an interrupted cell has to stop before the kernel is killed
STOP_PRINTING = 20  # a cell that printed this many times the output limit is interrupted at once
SIGNS = {  # words in a check's table that mean more than a wrong result
    verdict.LIMIT: re.compile(r"no end after \d+ s: .*"),
    verdict.STUDENT: re.compile(r"rank \d+ (raised|was ended by|ended with exit|was killed) .*"),
}


class ExecuteWithPapermill(NbGraderPreprocessor):
    """Run the notebook; see the module's docstring."""

    parameters = Dict({}, help="What papermill injects after the cell tagged `parameters`.").tag(config=True)
    cell_seconds = Float(120.0, help="Wall-clock limit of a cell, in seconds.").tag(config=True)
    notebook_seconds = Float(300.0, help="Wall-clock limit of a whole notebook, in seconds.").tag(config=True)
    output_bytes = Integer(1_000_000, help="What a cell may print; the rest is dropped.").tag(config=True)

    @default("enabled")
    def _enabled_default(self):  # `nbgrader autograde --no-execute` disables the stock preprocessor by its name
        return self.config.Execute.get("enabled", True)

    def preprocess(self, nb, resources):
        ran, notes, seconds = run(
            nb, self.parameters, self.cell_seconds, self.notebook_seconds, self.output_bytes, self.log
        )
        for cell, after in zip(nb.cells, ran, strict=True):
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = after.outputs, after.execution_count
        notes += settle(nb)
        resources["ringzero_verdict"] = _verdict(notes, seconds)
        return nb, resources


def run(nb, parameters, cell_seconds, notebook_seconds, output_bytes, log):
    """Run a copy of ``nb``: the cells as they came out, what happened as ``[(kind, sentence)]``, the seconds it took.

    Raises only for faults of the grader, such as a kernel that does not start.
    """
    kernel = nb.metadata.get("kernelspec", {}).get("name") or "python3"
    nb = load_notebook_node(_with_a_place_for_parameters(nb))
    nb = parameterize_notebook(nb, dict(parameters), kernel_name=kernel, language="python", engine_name=ENGINE)
    notes = []
    start = time.monotonic()
    with Fence() as fence:
        papermill_engines.execute_notebook_with_engine(
            ENGINE,
            nb,
            kernel_name=kernel,
            progress_bar=False,
            fence=fence,
            notes=notes,
            log=log,
            limits={"cell": cell_seconds, "notebook": notebook_seconds, "output": output_bytes},
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


class GradingEngine(Engine):
    """papermill's engine for grading: ``fence``, ``limits`` and ``notes`` as in ``run``."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *, fence, limits, notes, log, **_):
        client = GradingClient(
            nb_man,
            kernel_name=kernel_name,
            log=log,
            allow_errors=True,
            startup_timeout=600,
            iopub_timeout=INTERRUPT_SECONDS,
            interrupt_on_timeout=True,
            error_on_timeout={"ename": "TimeLimit", "evalue": "", "traceback": []},
            shutdown_kernel="immediate",
            skip_cells_with_tag="",  # a tag must not get a cell out of running
        )
        client.limits, client.notes = limits, notes
        client.connection_file = str(fence.folder.parent / "kernel.json")
        client.execute(
            env=fence.environment,
            cwd=str(fence.folder),
            stdout=subprocess.DEVNULL,  # what the cells print comes through the kernel's messages
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )


papermill_engines.register(ENGINE, GradingEngine)


class GradingClient(PapermillNotebookClient):
    """nbclient with a deadline for the whole notebook, and with a note where another client would raise."""

    def create_kernel_manager(self):
        manager = super().create_kernel_manager()
        manager.transport = "ipc"  # no ports: nothing to collide with, nothing to connect to
        manager.connection_file = self.connection_file
        return manager

    def execute(self, **kwargs):
        self.reset_execution_trackers()
        with self.setup_kernel(**kwargs):
            self.papermill_execute_cells()
        return self.nb

    def papermill_execute_cells(self):
        self._deadline = time.monotonic() + self.limits["notebook"]
        self.timeout_func = lambda _: max(0.1, min(self.limits["cell"], self._deadline - time.monotonic()))
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
                    self.execute_cell(cell, index, store_history=False)
                    self.code_cells_executed -= 1
                    continue
                self.execute_cell(cell, index)
                if self._stopped and time.monotonic() > self._deadline:
                    over = f"the notebook's {self.limits['notebook']:g} s were over in cell [{number}]"
            except DeadKernelError:
                over = f"KERNEL DIED in cell [{number}]{self._how_the_kernel_ended()}"
                self._end(cell, number, verdict.STUDENT, "KernelDied", over)
            except CellTimeoutError:
                over = f"TIME LIMIT in cell [{number}], which could not be interrupted"
                self._end(cell, number, verdict.LIMIT, "TimeLimit", over)
            finally:
                self.nb_man.cell_complete(cell, cell_index=index)

    def _how_the_kernel_ended(self):
        process = getattr(self.km.provisioner, "process", None)
        status = process.poll() if process is not None else None
        if status is None:
            return ""
        return f" ({signal.Signals(-status).name})" if status < 0 else f" (exit status {status})"

    def _end(self, cell, number, kind, name, sentence):
        cell.execution_count = number
        _add_error(cell, name, sentence)
        self.notes.append((kind, sentence))

    def _note_timeout(self, cell, cell_index, execute_reply):
        if execute_reply["content"]["ename"] != "TimeLimit":
            return
        self._stopped = True
        limit = min(self.limits["cell"], self.limits["notebook"])
        sentence = f"TIME LIMIT in cell [{self.code_cells_executed}]: stopped, at most {limit:g} s"
        self._end(cell, self.code_cells_executed, verdict.LIMIT, "TimeLimit", sentence)

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] in ("stream", "display_data", "execute_result", "update_display_data"):
            content = msg["content"]
            self._printed += len(content.get("text", "")) + sum(len(str(v)) for v in content.get("data", {}).values())
            if self._printed > self.limits["output"] and msg["msg_type"] != "execute_result":
                self._drop_output(cell)
                if self._printed > STOP_PRINTING * self.limits["output"] and not self._told_to_stop:
                    self._told_to_stop = True
                    self.km.provisioner.process.send_signal(signal.SIGINT)
                return None
        return super().process_message(msg, cell, cell_index)

    def _drop_output(self, cell):
        number, limit = self.code_cells_executed, self.limits["output"]
        sentence = f"OUTPUT LIMIT in cell [{number}]: all after {limit} bytes is dropped"
        if (verdict.LIMIT, sentence) not in self.notes:
            self.notes.append((verdict.LIMIT, sentence))
            cell.outputs.append(new_output("stream", name="stdout", text=f"\n{sentence}\n"))


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
        if error is not None and error.ename not in ("NotRun", "KernelDied", "TimeLimit"):
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
    """What the tables in a test cell's outputs say of hangs and of ranks that failed, each once."""
    text = "\n".join(str(output.get("data", {}).get("text/plain", "")) for output in cell.outputs)
    for kind, sign in SIGNS.items():
        found = sign.search(text)
        if found:
            yield kind, _shortened(found[0])


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
