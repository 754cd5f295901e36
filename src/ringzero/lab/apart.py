"""Call a student's function without ranks, for test cells that need no ``Check``.

    from ringzero.lab.apart import call
    points = 1.0 * (call("double", 2) == 4)

On a student's machine this is a plain call. In a grader's kernel for test cells, in which no code of a student may run,
the function runs in a box and a process of its own: plain data goes in and out as JSON, and what it prints is dropped.
"""

import base64
import builtins
import json
import subprocess
import sys
import tempfile
from typing import Any

from ringzero.lab import handle, students_kernel
from ringzero.lab.budget import call_seconds
from ringzero.lab.parameters import GraderFault, LabError, notebook_names
from ringzero.processes import sandbox

LARGEST_ANSWER = 1_000_000  # bytes
IN_THE_BOX = """
import base64, json, os, sys
answer = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the function prints is no answer
asked = json.loads(sys.stdin.buffer.read())
print(end=" ", file=answer, flush=True)  # the student's code begins
try:
    import cloudpickle
    function = cloudpickle.loads(base64.b64decode(asked["code"]))
    said = json.dumps({"returned": function(*asked["arguments"])})
except Exception as error:
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    said = json.dumps({"raised": kinds[0]})
answer.write(said)
answer.flush()
os._exit(0)
"""


def call(name: str, *arguments: Any) -> Any:
    """What the student's function ``name`` returns for ``arguments``, which are plain data, as JSON has it.

    Raises LabError if there is no such function, or, where it runs in a box, if it raises, ends its process, does not
    end in time, or returns what JSON cannot hold. The message never says what the function was given.
    Raises GraderFault if the box did not come to the function.
    """
    if not students_kernel.is_apart():
        function = notebook_names().get(name)
        if not callable(function):
            raise LabError(f"{name} is not defined: run the cell that defines it, then this one")
        return function(*arguments)
    student = handle.of(name)
    if student.problem is not None:
        raise LabError(student.problem)
    return _answer_of(name, json.dumps({"code": base64.b64encode(student.code).decode(), "arguments": arguments}))


def _answer_of(name, asked):
    limits, seconds = sandbox.limits_asked_for() or sandbox.Limits(), call_seconds()
    command = sandbox.enclosed([sys.executable, "-c", IN_THE_BOX], [], limits)
    with tempfile.TemporaryFile() as answer:  # a file, because its size is limited; a pipe's reader has no limit
        try:
            done = subprocess.run(
                command,
                input=asked.encode(),
                stdout=answer,
                stderr=subprocess.DEVNULL,
                env=sandbox.environment(),
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"{name} did not end: stopped after {seconds:g} s") from None
        answer.seek(0)
        text = answer.read(LARGEST_ANSWER + 1)
    if not text:
        raise GraderFault(f"{name} was not called: its sandbox ended before (exit status {done.returncode})")
    if not text.strip():
        raise LabError(f"{name} ended its process (exit status {done.returncode}) and left no answer")
    if len(text) > LARGEST_ANSWER:
        raise LabError(f"{name} returned more than {LARGEST_ANSWER} bytes")
    try:
        ((what, value),) = json.loads(text).items()
    except (ValueError, AttributeError, RecursionError):
        raise LabError(f"{name} left an answer that cannot be read") from None
    if what != "returned":
        known = isinstance(value, str) and isinstance(getattr(builtins, value, None), type)
        raise LabError(f"{name} raised {value if known else 'an exception'}")
    return value
