"""Four changes to how Jupyter Book makes a page.

- sphinx-thebe names a copy of thebe on another site, in every page, though no page starts a kernel: taken out.
- The theme offers a page's notebook only together with a link to a service that runs it; ours need none.
- ``{minutes}`` in a page's text becomes the minutes that it takes to read, ``{minutes of PAGE}`` those of another one,
  and ``{hours}`` the hours that all chapters take; ``{minutes of lab N}`` what a lab takes at most.
- What chapters and labs say at their start becomes links there, and tables for instructors (``teaching``).
"""

import re
import shutil
from pathlib import Path

import reading_time
import teaching


def setup(app):
    app.connect("source-read", with_minutes)
    app.connect("source-read", with_teaching, priority=600)  # after the minutes are there: it adds them up
    app.connect("html-page-context", without_thebe)
    app.connect("html-page-context", with_notebook, priority=400)  # before the theme collects its buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def without_thebe(app, pagename, templatename, context, doctree):
    def is_thebe(script):
        attributes = getattr(script, "attributes", {})
        return "thebe" in f"{getattr(script, 'filename', None) or ''}{attributes.get('body') or ''}"

    context["script_files"] = [script for script in context["script_files"] if not is_thebe(script)]


def with_notebook(app, pagename, templatename, context, doctree):
    notebook = Path(app.outdir).parent / "jupyter_execute" / f"{pagename}.ipynb"  # MyST-NB leaves it there
    if doctree is not None and "kernelspec" in app.env.metadata.get(pagename, {}) and notebook.is_file():
        copy = Path(app.outdir, "_sources", f"{pagename}.ipynb")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(notebook, copy)
        context["ipynb_source"] = copy.name


def with_minutes(app, docname, source):
    def read(path):
        app.env.note_dependency(path)
        return Path(app.srcdir, path).read_text(encoding="utf-8")

    def minutes(page):
        return reading_time.rounded(read(f"{page}.md"))

    def said(token):
        if token["lab"]:
            (solution,) = Path(app.srcdir).glob(f"../solutions/{int(token['lab']):02}_*.py")
            return str(teaching.lab_minutes(read(f"../solutions/{solution.name}")))
        return str(minutes(token["page"] or docname))

    source[0] = re.sub(r"\{minutes(?: of (?:lab (?P<lab>\d+)|(?P<page>\w+)))?\}", said, source[0])
    if "{hours}" in source[0]:
        chapters = [page for page in app.env.found_docs if page[0].isdigit()]
        source[0] = source[0].replace("{hours}", str(round(sum(map(minutes, chapters)) / 60)))


def with_teaching(app, docname, source):
    book = Path(app.srcdir)
    if docname[0].isdigit():
        source[0] = teaching.linked(docname, source[0])
    if any(token in source[0] for token in teaching.TOKENS):
        for path in [*book.glob("[0-9]*.md"), *book.glob("../solutions/[0-9]*.py"), book / "seminar.md"]:
            app.env.note_dependency(str(path))
    source[0] = teaching.added_up(teaching.filled(source[0], book))
