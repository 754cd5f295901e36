"""``make release``: what a release lacks, or what in it does not agree, is refused by name (``src/release.py``)."""

import importlib.util
import json
import shutil
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("release", ROOT / "src/release.py")
release = importlib.util.module_from_spec(specification)
specification.loader.exec_module(release)

FRONT = (
    '<html><a href="https://example.org/x">x</a><a href="two.html#part">2</a><link href="_static/a%20b.css?v=1"></html>'
)
TREE = {
    "src/ringzero/__init__.py": '__version__ = "1.2.3"\n',
    "src/ringzero/cli.py": "def main():\n    print('help')\n",
    "src/ringzero_course/__init__.py": "",
    "src/ringzero_course/pyproject.toml": (ROOT / "src/ringzero_course/pyproject.toml").read_text(),
    "pyproject.toml": (ROOT / "pyproject.toml").read_text(),
    "README.md": "A course.",
    "LICENSE": "free",
    "CITATION.cff": "title: x\nversion: 1.2.3\n",
    "CHANGELOG.md": "# Changes\n\n## 1.2.3 (2 May)\n\n- all\n\n## 1.2.2\n",
    "book/_toc.yml": "root: one\nchapters:\n  - file: two\n",
    "_build/html/index.html": '<meta http-equiv="Refresh" content="0; url=one.html" />',
    "_build/html/one.html": FRONT,
    "_build/html/two.html": '<a href="gone.html">only the front page is looked at</a>',
    "_build/html/search.html": "",
    "_build/html/_static/a b.css": "",
    "_build/html/slides/two.html": "a deck",
    "solutions/01_ring.py": "",
    "labs/01_ring.ipynb": json.dumps({"cells": [{"source": ["def ring():\n", "    ...\n"]}]}),
}


@pytest.fixture
def tree(tmp_path):
    """A checkout with the least that a release takes."""
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    dependent = tmp_path / "src/ringzero_course/pyproject.toml"
    dependent.write_text(dependent.read_text().replace(f"ringzero=={release.check_versions(ROOT)}", "ringzero==1.2.3"))
    return tmp_path


def change(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_all_files_of_this_repository_state_one_version():
    assert release.check_versions(ROOT).count(".") == 2


def test_a_release_is_wheels_site_and_labs(tree):
    made = release.release(tree)
    assert [path.name for path in made] == [
        "ringzero-1.2.3-py3-none-any.whl",
        "ringzero-labs-1.2.3.zip",
        "ringzero-site-1.2.3.zip",
        "ringzero_course-1.2.3-py3-none-any.whl",
    ]
    assert {path.parent for path in made} == {tree / "_build/release"}
    assert set(zipfile.ZipFile(made[0]).namelist()) >= {"ringzero/__init__.py", "ringzero/cli.py"}
    assert zipfile.ZipFile(made[1]).namelist() == ["ringzero-labs-1.2.3/01_ring.ipynb"]
    assert {"ringzero-site-1.2.3/slides/two.html", "ringzero-site-1.2.3/index.html"} <= {
        *zipfile.ZipFile(made[2]).namelist()
    }
    assert "ringzero_course/__init__.py" in zipfile.ZipFile(made[3]).namelist()
    assert not list(tree.rglob("*.egg-info")), "nothing but the release is left"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("src/ringzero/__init__.py", "__version__", "version", "src/ringzero/__init__.py states no version"),
        ("src/ringzero/__init__.py", "1.2.3", "1.3.0", "1.3.0, but src/ringzero_course/pyproject.toml states 1.2.3"),
        ("CITATION.cff", "1.2.3", "1.2.2", "version 1.2.3, but CITATION.cff states 1.2.2"),
        ("CHANGELOG.md", "## 1.2.3", "", "version 1.2.3, but CHANGELOG.md states 1.2.2"),
        ("book/_toc.yml", "two", "two\n  - file: three", "the site lacks three: make book"),
        ("book/_toc.yml", "  - file: two", "", "the site has old pages, two: rm -r _build/html, make book"),
        ("_build/html/index.html", "one.html", "first.html", "index.html links to first.html, which is not there"),
        ("_build/html/one.html", "two.html", "2.html", "one.html links to 2.html, which is not there: make book"),
        ("labs/01_ring.ipynb", "    ...", "    ### BEGIN SOLUTION", 'labs/01_ring.ipynb has "### BEGIN SOLUTION"'),
        ("labs/01_ring.ipynb", "    ...", "### BEGIN HIDDEN TESTS", 'labs/01_ring.ipynb has "### BEGIN HIDDEN TESTS"'),
        ("pyproject.toml", "[project]", "[projects]", "could not build the wheel of"),
    ],
)
def test_what_does_not_agree_is_refused_by_name(tree, file, old, new, said):
    change(tree / file, old, new)
    with pytest.raises(release.ReleaseError) as refused:
        release.release(tree)
    assert said in str(refused.value)
    assert not (tree / "_build/release").exists()


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("_build/html", "there is nothing in .*_build/html: make book"),
        ("_build/html/index.html", "the site has no index.html: make book"),
        ("_build/html/_static/a b.css", "one.html links to _static/a b.css, which is not there"),
        ("labs", "there is nothing in .*labs: make labs"),
        ("solutions/01_ring.py", r"labs/ and solutions/ differ in 01_ring: make labs"),
    ],
)
def test_what_is_missing_is_refused_by_name(tree, gone, said):
    path = tree / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(release.ReleaseError, match=said):
        release.release(tree)


# ---- wheels that are not what they should be


def wheel(folder, package, version, files):
    """The smallest wheel that pip installs."""
    name = package.replace("_", "-")
    about = f"{package}-{version}.dist-info"
    path = folder / f"{package}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for file, text in files.items():
            packed.writestr(file, text)
        packed.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{about}/entry_points.txt", f"[console_scripts]\n{name} = {package}.cli:main\n")
        packed.writestr(f"{about}/RECORD", "")
    return path


LIBRARY = {"ringzero/__init__.py": '__version__ = "1.2.3"', "ringzero/cli.py": "def main(): pass"}


@pytest.mark.parametrize(
    ("library", "course", "version", "said"),
    [
        (
            LIBRARY,
            {"ringzero_course/__init__.py": ""},
            "1.2.4",
            "the wheels are of versions 1.2.3 1.2.3 1.2.3, not 1.2.4",
        ),
        (
            LIBRARY | {"ringzero/cli.py": "import nowhere"},
            {"ringzero_course/__init__.py": ""},
            "1.2.3",
            "named 'nowhere'",
        ),
        (LIBRARY, {}, "1.2.3", "where the wheels are installed, Python imports .*other-packages"),
    ],
    ids=["of another version", "do not import", "without the package"],
)
def test_wheels_that_do_not_do_are_refused(tmp_path, monkeypatch, library, course, version, said):
    elsewhere = tmp_path / "other-packages/ringzero_course"
    elsewhere.mkdir(parents=True)
    (elsewhere / "__init__.py").touch()
    monkeypatch.syspath_prepend(elsewhere.parent)
    wheels = [wheel(tmp_path, "ringzero", "1.2.3", library), wheel(tmp_path, "ringzero_course", "1.2.3", course)]
    with pytest.raises(release.ReleaseError, match=said):
        release.check_wheels(wheels, version)
