"""``ringzero mutants --signatures``: run wrong solutions that have no signature yet, and store what their tables say.

Each is stored as soon as it is known, so the command may be stopped and run again.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from ringzero.grading import build_labs, durable, live_notebook, misconceptions, submission, withheld


def label(path: Path) -> str | None:
    """The mistake of a wrong solution: its line ``# mistake: NAME``."""
    found = re.search(r"^# mistake: *(\S+) *$", path.read_text(), re.MULTILINE)
    return found[1] if found else None


def collect(lab: str, paths: dict[str, Path]) -> Iterator[str]:
    """Bring the signatures of ``lab`` up to date with ``paths``, ``{name: file}``; yield names of those that ran."""
    known = {key: value for key, value in _stored().items() if key[0] != lab or key[1] in paths}
    for name, path in paths.items():  # a new label needs no run
        if (lab, name) in known:
            known[lab, name] = (label(path) or misconceptions.ONE_OF_A_KIND, known[lab, name][1])
    write(known)
    todo = [path for name, path in paths.items() if (lab, name) not in known]
    if not todo:
        return
    with live_notebook.kernel_of(build_labs.source_notebook(lab)) as kernel:
        kernel.run_all()
        for path in todo:
            wrong = submission.read_wrong_solution(path, lab)
            with kernel.changed(wrong.replacements, wrong.fails):
                cell = kernel.run(wrong.caught_by)
            known[lab, wrong.name] = (label(path) or misconceptions.ONE_OF_A_KIND, of_cell(cell))
            write(known)
            yield wrong.name


def of_cell(cell: NotebookNode) -> frozenset[str]:
    """The features of a test cell that ran."""
    secret = withheld.of([cell])
    return misconceptions.features([secret.table(table) for table in withheld.read_tables(cell)])


def _stored():
    return dict(misconceptions.signatures()) if misconceptions.SIGNATURES.exists() else {}


def write(known: dict[tuple[str, str], tuple[str, frozenset[str]]]) -> None:
    """Store signatures; features that several share are written once."""
    words = sorted({feature for _, own in known.values() for feature in own})
    place = {word: i for i, word in enumerate(words)}
    of_labs: dict[str, dict] = {}
    for (lab, name), (mistake, own) in sorted(known.items()):
        of_labs.setdefault(lab, {})[name] = [mistake, sorted(place[word] for word in own)]
    text = json.dumps({"features": words, "signatures": of_labs}, ensure_ascii=False, separators=(",", ":"))
    durable.write(misconceptions.SIGNATURES, text + "\n")
    for cached in (misconceptions.signatures, misconceptions._weighed):
        cached.cache_clear()
