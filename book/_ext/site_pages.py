"""Three changes to how Jupyter Book makes a page.

- When the library changed, every page with cells runs again; Sphinx looks at the pages' own text only.
- sphinx-thebe names a copy of thebe on another site, in every page, though no page starts a kernel: taken out.
- The theme offers a page's notebook only together with a link to a service that runs it; ours need none.
"""

import hashlib
import shutil
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "src"


def setup(app):
    app.connect("env-get-outdated", pages_to_run_again)
    app.connect("html-page-context", without_thebe)
    app.connect("html-page-context", with_notebook, priority=400)  # before the theme collects its buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pages_to_run_again(app, env, added, changed, removed):
    digest = hashlib.sha256()
    for path in sorted(LIBRARY.rglob("*.py")):
        digest.update(f"{path.relative_to(LIBRARY)} ".encode() + path.read_bytes())
    if getattr(env, "library_digest", None) == digest.digest():
        return []
    env.library_digest = digest.digest()  # kept with the environment when the build succeeds
    return [page for page in env.found_docs if "kernelspec" in env.metadata.get(page, {})]


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
