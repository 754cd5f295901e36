"""Make all that a release consists of, in ``_build/release``, and check it: what ``make release`` runs in the end.

    python src/release.py

The two wheels, the site as it was built (with its slides and the PDF, if they were made) and the labs as students get
them, each as a zip file. The version is that of ``src/ringzero/__init__.py``. Whatever is missing or does not agree is
named, and then ``_build/release`` stays as it was: a release is whole or absent.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
VERSION = ("src/ringzero/__init__.py", r'^__version__ = "(.+)"$')
STATED_ALSO = (  # where the version cannot be read from there; of the changes, their first heading counts
    ("src/ringzero_course/pyproject.toml", r'^dependencies = \["ringzero==(.+)"\]$'),
    ("CITATION.cff", r"^version: (.+)$"),
    ("CHANGELOG.md", r"^## (\S+)"),
)
NO_STUDENT_SEES = ("### BEGIN SOLUTION", "### BEGIN HIDDEN TESTS")
MADE_BY_SPHINX = {"genindex", "index", "search"}  # pages without a text of ours


class ReleaseError(Exception):
    """What is missing or wrong, and what the person can do."""


def main():
    try:
        made = release(ROOT)
    except ReleaseError as failure:
        print(f"make: no release: {failure}", file=sys.stderr)
        return 1
    print(*made, sep="\n")
    if "not yet released" in (ROOT / "CHANGELOG.md").read_text():
        print('CHANGELOG.md still says "not yet released". Put the date there before you hand this out.')
    return 0


def release(root):
    """The files that were made and found right, in ``_build/release`` of the checkout ``root``."""
    version = check_versions(root)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder, "release")
        here.mkdir()
        site = archive(root / "_build/html", here / f"ringzero-site-{version}.zip", "*", "make book")
        check_pages(site, root / "book")
        check_links(site)
        labs = archive(root / "labs", here / f"ringzero-labs-{version}.zip", "*.ipynb", "make labs")
        check_labs(labs, root / "solutions")
        check_wheels(build_wheels(root, here), version)
        final = root / "_build/release"
        shutil.rmtree(final, ignore_errors=True)
        shutil.copytree(here, final)
    return sorted(final.iterdir())


# ---- the version


def stated(root, file, pattern):
    """The version that the ``file`` states."""
    found = re.search(pattern, (root / file).read_text(), re.MULTILINE)
    if not found:
        raise ReleaseError(f"{file} states no version: no line matches {pattern}")
    return found[1]


def check_versions(root):
    """The version, if all files state the same one."""
    version = stated(root, *VERSION)
    for file, pattern in STATED_ALSO:
        if (other := stated(root, file, pattern)) != version:
            raise ReleaseError(f"{VERSION[0]} states version {version}, but {file} states {other}: make them the same")
    return version


# ---- the site and the labs


def archive(folder, file, pattern, made_by):
    """A zip file of what lies in the ``folder``, all below one folder of the file's name."""
    paths = [path for path in sorted(folder.rglob(pattern)) if path.is_file() and not path.name.startswith(".")]
    if not paths:
        raise ReleaseError(f"there is nothing in {folder}: {made_by}")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in paths:
            packed.write(path, Path(file.stem, path.relative_to(folder)))
    return file


def texts(file, suffix):
    """``{path below the archive's folder: text}`` of the files with this suffix, and the paths of all files."""
    with zipfile.ZipFile(file) as packed:
        paths = {name.partition("/")[2]: name for name in packed.namelist()}
        return {path: packed.read(name).decode() for path, name in paths.items() if path.endswith(suffix)}, set(paths)


def check_pages(site, book):
    """Each page of the book is in the site, and no page that the book has no longer: Sphinx leaves those there."""
    wanted = set(re.findall(r"(?:root|file): (\w+)", (book / "_toc.yml").read_text()))
    found = {path.removesuffix(".html") for path in texts(site, ".html")[0] if "/" not in path} - MADE_BY_SPHINX
    if wanted - found:
        raise ReleaseError(f"the site lacks {', '.join(sorted(wanted - found))}: make book")
    if found - wanted:
        raise ReleaseError(f"the site has old pages, {', '.join(sorted(found - wanted))}: rm -r _build/html, make book")


class Links(HTMLParser):
    """Collects ``found``: where a page's links, pictures, scripts and style sheets lie."""

    def __init__(self, page):
        super().__init__()
        self.found = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.found |= {given[name] for name in ("href", "src") if given.get(name)}
        if given.get("http-equiv", "").lower() == "refresh":  # how index.html sends its reader to the first page
            self.found.add(given["content"].partition("url=")[2])


def check_links(site):
    """Of the front page, and of the page that it sends its reader to, all links inside the site lead to a file."""
    pages, files = texts(site, ".html")
    todo = ["index.html"]
    for page in todo:  # grows while it is walked
        if page not in pages:
            raise ReleaseError(f"the site has no {page}: make book")
        links = {unquote(re.split("[#?]", link)[0]) for link in Links(pages[page]).found if not re.match(r"\w+:", link)}
        if missing := sorted(links - files - {""}):
            raise ReleaseError(f"the site's {page} links to {', '.join(missing)}, which is not there: make book")
        todo += [link for link in links if page == "index.html" and link.endswith(".html")]


def check_labs(labs, solutions):
    """Each lab is there, without a solution and without a hidden test."""
    notebooks = {path.removesuffix(".ipynb"): json.loads(text) for path, text in texts(labs, ".ipynb")[0].items()}
    wanted = {path.stem for path in solutions.glob("[0-9]*.py")}
    if notebooks.keys() != wanted:
        raise ReleaseError(f"labs/ and solutions/ differ in {', '.join(sorted(wanted ^ notebooks.keys()))}: make labs")
    for name, notebook in notebooks.items():
        for cell in notebook["cells"]:
            for words in NO_STUDENT_SEES:
                if words in "".join(cell["source"]):
                    raise ReleaseError(f'a cell of labs/{name}.ipynb has "{words}": make labs')


# ---- the wheels


def build_wheels(root, into):
    """``[wheel of the library, wheel of the course]``, built from a copy, so that no folder ``build`` is left."""
    built = []
    with tempfile.TemporaryDirectory() as copy:
        for package in ("ringzero", "ringzero_course"):
            leave_out = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
            shutil.copytree(root / "src" / package, Path(copy, "src", package), ignore=leave_out)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(root / name, copy)
        build = f"from setuptools.build_meta import build_wheel; print(build_wheel({str(into)!r}))"
        for project in (Path(copy), Path(copy, "src/ringzero_course")):
            said = run([sys.executable, "-c", build], f"build the wheel of {project.name}", project)
            built.append(into / said.splitlines()[-1])
    return built


def check_wheels(wheels, version):
    """Both are of this version, and are what a new environment imports. The packages that they need are this one's."""
    program = (
        "import importlib.metadata as m, ringzero, ringzero_course, ringzero.cli as cli\n"
        "print(m.version('ringzero'), m.version('ringzero-course'), ringzero.__version__)\n"
        "print(ringzero.__file__, ringzero_course.__file__, sep='\\n')\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder).resolve()
        venv.create(new, with_pip=True)
        python = str(new / "bin/python")
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        run([*pip, "install", "--no-deps", "--no-index", *map(str, wheels)], "install the wheels", new)
        here = next(new.glob("lib/python*/site-packages"))
        (here / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")) + "\n")
        said = run([python, "-I", "-c", program], "import the wheels", new).splitlines()
        run([str(new / "bin/ringzero"), "--help"], "run the command ringzero", new)
    if set(said[0].split()) != {version}:
        raise ReleaseError(f"the wheels are of versions {said[0]}, not {version}")
    for imported in said[1:]:
        if not imported.startswith(str(here)):
            raise ReleaseError(f"where the wheels are installed, Python imports {imported}")


def run(command, what, folder):
    """What the command prints. Raises ``ReleaseError`` with its last words."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"could not {what}: " + "\n".join(done.stderr.splitlines()[-12:]))
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
