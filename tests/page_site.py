"""A folder that a browser opens from the disk, with all that Python in a page needs, as the book's build leaves it."""

import importlib.util
import shutil
from pathlib import Path
from urllib.parse import urlparse

from ringzero.drawing.figure import Figure

BOOK = Path(__file__).parents[1] / "book"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>test</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="_static/ringzero.css">{scripts}</head><body>{body}</body></html>"""


def extension(name="page_python"):
    """A module of ``book/_ext``, which Sphinx loads by its path."""
    specification = importlib.util.spec_from_file_location(name, BOOK / f"_ext/{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def make_site(folder: Path) -> Path:
    """``folder`` with the book's own scripts and styles in ``_static``, and what Python needs."""
    shutil.copytree(BOOK / "_page", folder / "_static")
    (folder / "_static/micropython.js").write_text(extension().bundle())
    return folder


def write_page(path: Path, *figures: Figure, scripts=("engine.js", "calculator.js")) -> Path:
    """A page of a site with these figures."""
    tags = "".join(f'<script defer src="_static/{name}"></script>' for name in scripts)
    path.write_text(PAGE.format(scripts=tags, body="".join(figure.html for figure in figures)))
    return path


def watched(context, requests: list, complaints: list):
    """A page of the context that notes what it asks for and what it complains about."""
    page = context.new_page()
    page.set_default_timeout(300_000)  # milliseconds, far above any load
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda m: m.type in ("error", "warning") and complaints.append(f"{m.type}: {m.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    return page


def elsewhere(requests: list[str]) -> list[str]:
    """Those of the addresses that are not on this machine."""
    return [url for url in requests if urlparse(url).scheme not in ("file", "data", "blob")]
