"""The tables of rooms in ``book/for_contributors.md`` hold: every import goes down, and none makes a circle.

Imports are read from the source with ``ast``, also those inside functions: of both packages, of the pages' code
cells and of the labs' solutions. The tables are the only place where the rules stand.
"""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = "book/for_contributors.md"
PACKAGES = ("src/ringzero/", "src/ringzero_course/")
OLD_NAME = "src/ringzero/lab.py"  # says where the labs' checks are now
INNER = "costs/page"  # a folder of a room that is a room of its own


@dataclass(frozen=True)
class Row:
    """A row of the table. ``names`` are rooms, or files of a room, whose row adds to their room's."""

    names: tuple[str, ...]
    rooms: frozenset[str]
    packages: frozenset[str]
    any_package: bool
    no_standard_library: bool


@dataclass(frozen=True)
class Import:
    """``module`` as the statement at ``file``, ``line`` names it, and the names it takes from there (none: all)."""

    file: str
    line: int
    module: str
    names: tuple[str, ...] = ()


# ---- what the table says


def read_table(page: str) -> list[Row]:
    """The rows under the heading "Rooms". Raises ValueError where a row allows a room that does not stand above it."""
    lines = page.split("## Rooms")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    rows: list[Row] = []
    for names, _, rooms, packages in cells:
        above = {name for row in rows for name in row.names}
        allowed = above if rooms == "all above" else set(_quoted(rooms))
        if not allowed <= above:
            raise ValueError(f"{TABLE}: {names} may not stand before {', '.join(sorted(allowed - above))}")
        anything, nothing = packages.startswith("any"), packages.startswith("only")
        rows.append(Row(_quoted(names), frozenset(allowed), frozenset(_quoted(packages)), anything, nothing))
    return rows


def _quoted(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([\w/.]+)`", cell))


# ---- what the sources say


def read_sources(root: Path) -> dict[str, str]:
    """``{path from the root: Python source}``; of a page, its code cells, at the lines where they stand."""
    sources = {}
    for pattern in (*(f"{package}**/*.py" for package in PACKAGES), "solutions/*.py", "book/**/*.py", "book/*.md"):
        for path in root.glob(pattern):
            text, file = path.read_text(), path.relative_to(root).as_posix()
            if file == OLD_NAME:
                continue
            sources[file] = code_cells(text) if path.suffix == ".md" else text
    return sources


def code_cells(page: str) -> str:
    """A page with everything but its Python blanked out, so that line numbers are the page's."""
    lines, inside = [], False
    for line in page.splitlines():
        if line.startswith("```"):
            inside = line.startswith("```{code-cell}")
            line = ""
        is_python = inside and not re.match(r"[:%!]|---", line)  # options of the cell, magics and shell commands
        lines.append(line if is_python else "")
    return "\n".join(lines)


@functools.cache
def imports(file: str, source: str) -> list[Import]:
    found = []
    for node in ast.walk(ast.parse(source, file)):
        if isinstance(node, ast.Import):
            found += [Import(file, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module, names = "." * node.level + (node.module or ""), tuple(alias.name for alias in node.names)
            found.append(Import(file, node.lineno, module, names))
    return found


def room_of(file: str) -> str:
    """The room of a file: a folder or file of a package, ``INNER``, a package itself, "book" or "solutions"."""
    inside = inside_package(file)
    if inside == file:
        return file.split("/")[0]
    if inside.startswith(f"{INNER}/"):
        return INNER
    first = inside.split("/")[0].removesuffix(".py")
    return file.split("/")[1] if first == "__init__" else first


def inside_package(file: str) -> str:
    """The file's path from the folder of its package; the whole path of a file that lies in none."""
    return next((file.removeprefix(package) for package in PACKAGES if file.startswith(package)), file)


def modules_of(sources: Mapping[str, str]) -> dict[str, str]:
    """``{module: file}`` of the package."""
    modules = {}
    for file in sources:
        if file.startswith(PACKAGES):
            parts = PurePosixPath(file).relative_to("src").with_suffix("").parts
            modules[".".join(parts).removesuffix(".__init__")] = file
    return modules


def targets(imported: Import, modules: Mapping[str, str]) -> set[str]:
    """The package's modules that an import brings in: submodules named in it, else the module itself."""
    names = {f"{imported.module}.{name}" for name in imported.names}
    found = {name for name in names if name in modules}
    return found if found and found == names else found | ({imported.module} & modules.keys())


# ---- the rules


def violations(sources: Mapping[str, str], rows: list[Row]) -> list[str]:
    """A sentence, with file and line, for each import that the table does not allow, and for each circle."""
    modules, arrows, wrong = modules_of(sources), {}, []
    for file, source in sources.items():
        for imported in imports(file, source):
            if imported.module.startswith("."):
                wrong.append(f"{file}:{imported.line}: write {imported.module} with its full name, from ringzero on")
            elif imported.module.split(".")[0] in ("ringzero", "ringzero_course"):
                for module in targets(imported, modules):
                    arrows.setdefault(file, {}).setdefault(modules[module], imported.line)
            wrong += refused(imported, rows, modules)
    return wrong + circles(arrows)


def refused(imported: Import, rows: list[Row], modules: Mapping[str, str]) -> list[str]:
    room, inside = room_of(imported.file), inside_package(imported.file)
    mine = [row for row in rows if room in row.names or inside in row.names]
    where, top = f"{imported.file}:{imported.line}", imported.module.split(".")[0]
    if not mine:
        return [f"{where}: the room {room} is not in the table of {TABLE}"]
    rooms, packages = (frozenset().union(*(getattr(row, what) for row in mine)) for what in ("rooms", "packages"))
    if top in ("ringzero", "ringzero_course"):
        others = {room_of(modules[module]) for module in targets(imported, modules)} - {room, *rooms}
        allowed = ", ".join(sorted(rooms)) or "nothing"
        return [f"{where}: {room} may not import {other}, only {allowed}" for other in sorted(others)]
    standard = top in sys.stdlib_module_names and not any(row.no_standard_library for row in mine)
    if standard or top in packages or not top or any(row.any_package for row in mine):
        return []
    return [f"{where}: {room} may not import the package {top}, only {', '.join(sorted(packages)) or 'none'}"]


def circles(arrows: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One sentence for each circle of modules; ``arrows[a][b]`` is the line of file a that imports file b."""
    found, known = [], set()
    for start in sorted(arrows):
        way = _way_back(start, arrows)
        if way and not known.intersection(way):
            known.update(way)
            steps = [f"{a}:{arrows[a][b]}" for a, b in zip(way, [*way[1:], start], strict=True)]
            found.append(f"{steps[0]}: a circle of imports: {' -> '.join(steps)} -> {start}")
    return found


def _way_back(start: str, arrows: Mapping[str, Mapping[str, int]]) -> list[str] | None:
    """The shortest circle through ``start``, or None."""
    ways, seen = [[start]], set()
    for way in ways:  # grows while it is walked: breadth first
        for file in arrows.get(way[-1], ()):
            if file == start:
                return way
            if file not in seen:
                seen.add(file)
                ways.append([*way, file])
    return None


# ---- the tests


@pytest.fixture(scope="module")
def rows():
    return read_table((ROOT / TABLE).read_text())


@pytest.fixture(scope="module")
def sources():
    return read_sources(ROOT)


def test_every_import_goes_down_and_none_makes_a_circle(sources, rows):
    wrong = violations(sources, rows)
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_table_has_every_room_and_no_other(sources, rows):
    named = {name for row in rows for name in row.names}
    rooms = {room_of(file) for file in sources}
    assert rooms <= named
    assert {name for name in named if name not in rooms and not any(f"{package}{name}" in sources for package in PACKAGES)} == set()


ONE_BAD_LINE = {
    "the course in the library": (
        "src/ringzero/measure/turns.py",
        "from ringzero_course.tasks import characters",
        "measure may not import tasks",
    ),
    "an arrow up": ("src/ringzero/zero/stages.py", "from ringzero.ranks import launch", "zero may not import ranks"),
    "inside a function": (
        "src/ringzero/network/__init__.py",
        "def f():\n    import ringzero_course.lab.runs",
        "network may not import lab",
    ),
    "the whole package": ("src/ringzero/zero/model.py", "import ringzero", "zero may not import ringzero"),
    "a heavy package": ("src/ringzero/costs/nccl.py", "import torch", "costs may not import the package torch"),
    "what MicroPython lacks": (
        "src/ringzero/costs/page/inputs.py",
        "import enum",
        "costs/page may not import the package enum",
    ),
    "what MicroPython does not get": (
        "src/ringzero/costs/page/calculators.py",
        "from ringzero.costs import nccl",
        "costs/page may not import costs",
    ),
    "torch beside the executor": (
        "src/ringzero/collectives/ring.py",
        "import torch",
        "collectives may not import the package torch",
    ),
    "a page": ("book/11_zero.md", "from ringzero_course.bench import runner", "book may not import bench"),
    "a lab": ("solutions/06_zero.py", "from ringzero_course.grading import verdict", "solutions may not import grading"),
    "a circle in a room": (
        "src/ringzero_course/boxes/sandbox.py",
        "from ringzero_course.boxes.watches import MemoryWatch",
        "a circle of imports",
    ),
    "by the package": (
        "src/ringzero/drawing/palette.py",
        "from ringzero.drawing import timeline",
        "a circle of imports",
    ),
}


@pytest.mark.parametrize("what", ONE_BAD_LINE)
def test_one_bad_line_is_named(sources, rows, what):
    file, bad, said = ONE_BAD_LINE[what]
    before = violations(sources, rows)
    source = sources[file].rstrip("\n") + "\n"
    broken = violations({**sources, file: source + bad + "\n"}, rows)
    (new,) = set(broken) - set(before)
    assert said in new
    assert f"{file}:{len((source + bad).splitlines())}" in new


def test_a_row_cannot_allow_what_stands_below_it():
    page = "## Rooms\n| `costs` | formulas | `network` | only `math` |\n| `network` | links | `costs` | |\n"
    with pytest.raises(ValueError, match="`costs` may not stand before network"):
        read_table(page)


def test_a_page_is_read_cell_by_cell():
    cell = "```{code-cell} python\n:tags: [hide-input]\n%%ranks 4\nimport b\n```"
    page = f"import a\n\n{cell}\n\n```python\nimport c\n```\n"
    assert [(each.line, each.module) for each in imports("p.md", code_cells(page))] == [(6, "b")]
