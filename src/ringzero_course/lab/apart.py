"""Call a student's function without ranks, for test cells that need no ``Check``.

    from ringzero_course.lab.apart import call
    points = 1.0 * (call("double", 2) == 4)

On a student's machine this is a call in the notebook. In a grader's kernel for test cells, where no student's code may
run, the function runs in a box and a process of its own, and what it prints is dropped. In both cases plain data goes
in and out (``packed``): copies, in which a tuple stays a tuple.
"""

import base64
import builtins
import subprocess
import sys
import tempfile
from typing import Any

from ringzero_course.boxes import sandbox
from ringzero_course.lab import handle, packed, students_kernel
from ringzero_course.lab.budget import call_seconds
from ringzero_course.lab.parameters import GraderFault, LabError, notebook_names

LARGEST_ANSWER = 1_000_000  # bytes
IN_THE_BOX = """
import base64, os, sys
from ringzero_course.lab import packed
answer = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the function prints is no answer
asked = packed.loads(sys.stdin.buffer.read())
print(end=" ", file=answer, flush=True)  # the student's code begins
try:
    import cloudpickle
    function = cloudpickle.loads(base64.b64decode(asked["code"]))
    said = packed.dumps({"returned": function(*asked["arguments"])})
except Exception as error:
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    said = packed.dumps({"raised": kinds[0]})
answer.write(said)
answer.flush()
os._exit(0)
"""


def call(name: str, *arguments: Any) -> Any:
    """What the student's function ``name`` returns for ``arguments``, which are plain data.

    Raises LabError if there is no such function, if it returns what is no plain data, or, where it runs in a box, if it
    raises, ends its process, or does not end in time. The message never says what the function was given.
    Raises GraderFault if the box did not come to the function.
    """
    if not students_kernel.is_apart():
        function = notebook_names().get(name)
        if not callable(function):
            raise LabError(f"{name} is not defined: run the cell that defines it, then this one")
        returned = function(*packed.loads(packed.dumps(list(arguments))))
        try:
            return packed.loads(packed.dumps(returned))
        except (TypeError, ValueError, RecursionError) as error:
            raise LabError(f"{name} returned what is no plain data ({error})") from None
    student = handle.of(name)
    if student.problem is not None:
        raise LabError(student.problem)
    return _answer_of(
        name, packed.dumps({"code": base64.b64encode(student.code).decode(), "arguments": list(arguments)})
    )


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
            raise LabError(f"no end after {seconds:g} s: {name} was stopped") from None
        answer.seek(0)
        text = answer.read(LARGEST_ANSWER + 1)
    if not text:
        raise GraderFault(f"{name} was not called: its sandbox ended before (exit status {done.returncode})")
    if not text.strip():
        raise LabError(f"{name} ended its process (exit status {done.returncode}) and left no answer")
    if len(text) > LARGEST_ANSWER:
        raise LabError(f"{name} returned more than {LARGEST_ANSWER} bytes")
    try:
        ((what, value),) = packed.loads(text.decode()).items()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise LabError(f"{name} left an answer that cannot be read") from None
    if what != "returned":
        known = isinstance(value, str) and isinstance(getattr(builtins, value, None), type)
        raise LabError(f"{name} raised {value if known else 'an exception'}")
    return value
