"""The reader's text as Python: run once, with ``send`` and ``recv`` that know their line, and errors with theirs."""

import sys

from ringzero_course.in_page.requests import RECV, SEND

FILE = "your code"


def names_of(source: str, given: dict) -> dict:
    """The names that ``source`` defines, among them those ``given``. Raises whatever it raises."""
    names = dict(given)
    names["__name__"] = "page"
    exec(compile(with_lines(source), FILE, "exec"), names)
    return names


def with_lines(source: str) -> str:
    """``send(`` on line 7 becomes ``send[7](``, and ``recv(`` likewise: MicroPython has no frames to ask.

    >>> print(with_lines("def rank(r, n):\\n    yield send(1, r), resend(1)"))
    def rank(r, n):
        yield send[2](1, r), resend(1)
    """
    lines = source.replace("\r\n", "\n").split("\n")
    for place in range(len(lines)):
        for word in (SEND, RECV):
            done, *rest = lines[place].split(f"{word}(")
            for part in rest:
                done += (f"{word}[{place + 1}](" if _is_call(done) else f"{word}(") + part
            lines[place] = done
    return "\n".join(lines)


def _is_call(before):
    """Whether the word after this text is called by its own name: no ``resend(``, ``x.send(`` or ``def send(``."""
    last = before[-1:]
    return not (last in ("_", ".") or last.isalpha() or last.isdigit() or before.strip() == "def")


def lines_of(error: BaseException) -> list:
    """The lines of the reader's code that an exception has come through, where it was raised last."""
    found = []
    for part in _trace(error).split(f'File "{FILE}", line ')[1:]:
        digits = ""
        while part[len(digits) : len(digits) + 1].isdigit():
            digits = part[: len(digits) + 1]
        found.append(int(digits))
    return found


def _trace(error):
    if sys.implementation.name == "micropython":
        import io

        text = io.StringIO()
        sys.print_exception(error, text)
        return text.getvalue()
    import traceback

    return "".join(traceback.format_exception(error))
