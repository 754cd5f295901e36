"""What is read of what a submission's kernels send. A student's kernel may send anything.

Messages that no kernel sends are dropped and noted, and so is what is printed after a limit.
"""

import signal
import time

from nbclient.exceptions import DeadKernelError
from nbformat import ValidationError
from nbformat import validate as validate_format
from nbformat.v4 import new_output
from papermill.clientwrap import PapermillNotebookClient
from traitlets import TraitError

from ringzero_course.grading import readable, verdict

MOST_OUTPUTS = 20  # times the output limit: what all cells of a notebook may print
STOP_PRINTING = 20  # a cell that printed this many times the output limit is interrupted at once
MOST_UNREADABLE = 100  # messages of a cell
SHOWN = ("stream", "display_data", "execute_result", "update_display_data", "error")  # messages that are outputs
# What is read of a cell. Not the messages of widgets: they could have the grader keep, hide and send what they like.
READ = (*SHOWN, "status", "execute_input", "clear_output")
# What a reader of messages raises where they are not as the kernel's protocol has them.
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError, TraitError, ValidationError)


class CarefulClient(PapermillNotebookClient):
    """nbclient that believes no message, with ``settings``, ``box`` and ``notes`` as in ``GradingClient``.

    ``_begin_to_read`` comes before each cell. ``_idle`` says whether the last message of a cell came, ``_unreadable``
    how many of its messages could not be read.
    """

    _printed_in_all = 0

    def _begin_to_read(self):
        self._printed, self._told_to_stop = 0, False

    def _keep_outputs_alone(self, cell, number):
        """Drop what cannot stand in a notebook, and note what was dropped of cell ``number``."""
        outputs, counted = cell.outputs, type(cell.execution_count) in (int, type(None))
        cell.outputs = [output for output in outputs if _is_output(output)]
        if not counted:
            cell.execution_count = None
        if self._unreadable or len(cell.outputs) < len(outputs) or not counted:
            sentence = f"cell [{number}] sent the grader messages that no kernel sends; they are dropped"
            self.notes.append((verdict.TAMPERING, sentence))

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

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] not in READ:
            return None
        if msg["msg_type"] == "status" and msg["content"]["execution_state"] == "idle":
            self._idle = True
        if msg["msg_type"] in SHOWN:
            length = sum(len(str(part)) for name, part in msg["content"].items() if name != "name")
            self._printed += length
            self._printed_in_all += 0 if self._is_trusted() else length
            is_kept = self._is_trusted() and msg["msg_type"] in ("execute_result", "error")
            most = self.settings.output_bytes
            of_all = 0 if self._is_trusted() else self._printed_in_all
            if (self._printed > most or of_all > MOST_OUTPUTS * most) and not is_kept:
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
        if self._printed > limit:
            sentence = f"OUTPUT LIMIT in cell [{number}]: all after {limit} bytes is dropped"
        else:
            sentence = f"OUTPUT LIMIT of the notebook: all after {MOST_OUTPUTS * limit} bytes is dropped"
        if (verdict.LIMIT, sentence) not in self.notes:
            self.notes.append((verdict.LIMIT, sentence))
            cell.outputs.append(new_output("stream", name="stdout", text=f"\n{sentence}\n"))


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
