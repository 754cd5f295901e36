"""Where a student's functions live in another kernel than the checks: how a check gets their handles from there.

A grader runs a student's cells in a kernel in a box, and the test cells in one of its own. It names the first one's
connection file in the environment of the second. What comes back from there is a student's, and may be anything: it is
taken only if it is plain data of the right types. The pickled functions in it are bytes here; only ranks load them.
"""

import base64
import functools
import json
import linecache
import os
import queue
import time
from typing import Any

from ringzero.record import sources
from ringzero_course.boxes.sandbox import STUDENTS_KERNEL

ANSWER_SECONDS = 30.0
LARGEST_ANSWER = 100_000_000  # bytes of a message; a longer one is not received
MOST_ANSWERS = 2  # that wait to be read; that kernel may send without end, and keeps or drops what is more
LARGEST_CODE, LONGEST_TEXT = 50_000_000, 2_000  # bytes, characters
ASK = "__import__('ringzero_course.lab.handle', fromlist=['exported']).exported({name!r})"


def is_apart() -> bool:
    """Whether the student's functions are in another kernel."""
    return STUDENTS_KERNEL in os.environ


def as_text(handle: Any) -> str:
    """In the student's kernel: a ``Handle`` and the cells' sources, as JSON in base64, which has no quotes."""
    encoded = {name: base64.b64encode(getattr(handle, name)).decode() for name in ("code", "instructions")}
    plain = {"version": handle.version, "problem": handle.problem}
    lists = {"cells": sorted(handle.cells), "globals": list(handle.globals)}
    text = json.dumps(encoded | plain | lists | {"sources": sources.collect()})
    return base64.b64encode(text.encode()).decode()


class NoAnswerError(RuntimeError):
    """The kernel does not answer: something in it still runs, or its answer was too large to be received."""


def ask(name: str) -> dict[str, Any]:
    """The fields of the handle of what the student's kernel calls ``name``.

    Raises NoAnswerError, and all kinds of errors where the answer is no such thing.
    """
    try:
        return _answer(name)
    except BaseException:  # zmq ends a connection that had a message over its limit: the next question has a new one
        _client().stop_channels()
        _client.cache_clear()
        raise


def _answer(name):
    client = _client()
    asked = client.execute("", silent=True, user_expressions={"handle": ASK.format(name=name)}, allow_stdin=False)
    deadline = time.monotonic() + ANSWER_SECONDS
    reply: dict = {"parent_header": {}}
    while reply["parent_header"].get("msg_id") != asked:
        left = deadline - time.monotonic()
        try:
            if left <= 0:  # there may be other messages without end
                raise queue.Empty
            reply = client.get_shell_msg(timeout=left)
        except queue.Empty:
            raise NoAnswerError(f"it did not answer in {ANSWER_SECONDS:g} s") from None
    answer = reply["content"].get("user_expressions", {}).get("handle", {})
    if answer.get("status") != "ok":
        raise NoAnswerError(f"{answer.get('ename')}: {answer.get('evalue')}"[:LONGEST_TEXT])
    if "text/plain" not in answer["data"]:  # a cell changed how its kernel shows things
        raise NoAnswerError("it shows no text")
    text = answer["data"]["text/plain"].strip("'\"")  # as Python writes a string
    return _checked(json.loads(base64.b64decode(text, validate=True)))


@functools.cache
def _client():
    import zmq
    from jupyter_client import BlockingKernelClient

    client = BlockingKernelClient(connection_file=os.environ[STUDENTS_KERNEL])
    client.load_connection_file()
    client.context.setsockopt(zmq.MAXMSGSIZE, LARGEST_ANSWER)
    client.context.setsockopt(zmq.RCVHWM, MOST_ANSWERS)
    client.start_channels(shell=True, iopub=False, stdin=False, hb=False, control=False)
    return client


def _checked(found: Any) -> dict[str, Any]:
    """The fields, and the sources are where tracebacks look. Raises ValueError for what is not of its type."""
    problem, texts = found["problem"], [*found["cells"], *found["globals"]]
    if type(found["version"]) is not int or not (problem is None or type(problem) is str):
        raise ValueError("no version, or no sentence")
    if any(type(text) is not str or len(text) > LONGEST_TEXT for text in texts):
        raise ValueError("names that are no text")
    code, instructions = (base64.b64decode(found[name]) for name in ("code", "instructions"))
    if len(code) > LARGEST_CODE:
        raise ValueError(f"{len(code)} bytes of code, over the limit of {LARGEST_CODE}")
    _install(found["sources"])
    return {
        "version": found["version"],
        "code": code,
        "instructions": instructions,
        "problem": None if problem is None else problem[:LONGEST_TEXT],
        "cells": frozenset(found["cells"]),
        "globals": tuple(found["globals"]),
    }


def _install(cells: Any) -> None:
    """Make the student's cells known to tracebacks, but never in place of a file that is known already."""
    for name, (label, text) in cells.items():
        if (
            not all(type(each) is str for each in (name, label, text))
            or not sources.is_of_a_cell(name)
            or _is_own(name)
        ):
            raise ValueError("a source that is no text of a cell")
        if name not in linecache.cache or name in sources.installed():
            sources.install({name: [label, text]})


def _is_own(name):
    """Whether IPython gives files of this name to cells of this process: one that runs later could seem another."""
    return f"ipykernel_{os.getpid()}" in name
