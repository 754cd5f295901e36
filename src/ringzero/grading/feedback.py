"""What the student sees: the verdict on top, every output, and nothing of the hidden tests."""

import html
import re

from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import List

from ringzero.grading import verdict

HIDDEN = re.compile(r"^[^\n]*BEGIN HIDDEN TESTS.*?(?:END HIDDEN TESTS[^\n]*|\Z)", re.DOTALL | re.MULTILINE)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
REPLACEMENT = "# (hidden tests)"
_ADVICE = {
    verdict.OK: "Every cell ran. The tables below say which checks passed, and why the others did not.",
    verdict.STUDENT: "The cell that failed shows its error below. The cells that did run keep their points.",
    verdict.LIMIT: "Something did not end in its time, or printed without end. The cells before it keep their points.",
    verdict.INVALID: "Nothing could be run. Put it right and hand it in again, or ask your instructor.",
    verdict.GRADER: "This is our fault, not yours. The submission will be graded again.",
}


class ForTheStudent(NbGraderPreprocessor):
    """For ``GenerateFeedback.preprocessors``, after ``GetGrades``."""

    display_data_priority: List = List([], help="Not used; nbconvert's HTML exporter sets it for all.").tag(config=True)

    def preprocess(self, nb, resources):
        secrets = {line for cell in nb.cells for line in _hidden_lines(cell.source)}
        for cell in nb.cells:
            cell.source = HIDDEN.sub(REPLACEMENT, cell.source)
            for output in cell.get("outputs", []):
                _redact(output, secrets)
        found = verdict.read(resources["metadata"]["path"])
        if found is not None:
            nb.cells.insert(0, new_markdown_cell(_banner(found)))
        return nb, resources


def _banner(found):
    colour = {verdict.OK: "#2e7d32", verdict.INVALID: "#b71c1c", verdict.GRADER: "#4a148c"}.get(found.kind, "#b45f06")
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in found.notes if note != found.reason)
    return (
        f'<div class="ringzero-verdict" style="border-left: 6px solid {colour}; padding: 0.5em 1em; margin: 0 0 1em">'
        f'<p style="font-size: 130%; margin: 0"><b>{found.kind}</b></p>'
        + (f"<p><code>{html.escape(found.reason)}</code></p>" if found.reason else "")
        + (f"<ul>{notes}</ul>" if notes else "")
        + f"<p>{_ADVICE[found.kind]} ({found.seconds:.0f} s)</p></div>"
    )


def _hidden_lines(source):
    """The lines of hidden tests that would give something away."""
    for region in HIDDEN.findall(source):
        yield from (line.strip() for line in region.splitlines() if len(line.strip()) > 8)


def _redact(output, secrets):
    if output.output_type == "stream":
        output.text = _without(output.text, secrets)
    elif output.output_type == "error":
        output.evalue = _without(output.evalue, secrets)
        output.traceback = [_without(part, secrets) for part in output.traceback]
    else:
        for kind, value in output.get("data", {}).items():
            if isinstance(value, str):
                output.data[kind] = _without(value, secrets)


def _without(text, secrets):
    """``text`` without the lines that show a hidden test, whether coloured (a traceback) or escaped (HTML)."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        plain = html.unescape(ANSI.sub("", line))
        if any(secret in plain for secret in secrets):
            lines[i] = "(hidden test)"
    return "\n".join(lines)
