"""Python for pages: one script with all that ``engine.js`` needs, and the scripts that some pages need and others not.

A page from a disk may neither fetch a file nor import a module, but it may load a classic script. So MicroPython's
loader, its wasm in base64, and the Python sources that pages run are written into ``_static/micropython.js``.
"""

import base64
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MICROPYTHON = ROOT / "book/_vendor/micropython"
SOURCES = (  # in src/, for pages
    "ringzero/costs/__init__.py",
    "ringzero/costs/page/*.py",
    "ringzero_course/in_page/*.py",
    *(f"ringzero/drawing/{name}.py" for name in ("palette", "svg", "axes")),
    "ringzero_course/figures/readout.py",
)
SCRIPTS = (  # a page with this class has these scripts
    ("rz-calculator", ("engine.js", "calculator.js")),
    ("rz-writing", ("engine.js", "write.js")),
)


def setup(app):
    app.connect("html-page-context", add_scripts, priority=400)  # before site_pages takes scripts out
    app.connect("build-finished", write_bundle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def sources():
    """``{path: text}`` of the Python that a page can import."""
    packages = ("ringzero", "ringzero/drawing", "ringzero_course", "ringzero_course/figures")
    files = {f"{package}/__init__.py": "" for package in packages}  # their own import more than pages have
    files["answer.py"] = (ROOT / "book/_page/answer.py").read_text()
    for pattern in SOURCES:
        for path in sorted((ROOT / "src").glob(pattern)):
            files[path.relative_to(ROOT / "src").as_posix()] = path.read_text()
    return files


def bundle():
    """The text of ``micropython.js``."""
    brought = {
        "loader": (MICROPYTHON / "micropython.mjs").read_text(),
        "wasm": base64.b64encode((MICROPYTHON / "micropython.wasm").read_bytes()).decode(),
        "files": sources(),
    }
    return f"ringzero.python.deliver({json.dumps(brought, ensure_ascii=False)});\n"


def add_scripts(app, pagename, templatename, context, doctree):
    body = context.get("body", "")
    for name in dict.fromkeys(name for marker, names in SCRIPTS if marker in body for name in names):  # each once
        app.add_js_file(name)


def write_bundle(app, exception):
    if exception is None and app.builder.format == "html":
        Path(app.outdir, "_static", "micropython.js").write_text(bundle())
