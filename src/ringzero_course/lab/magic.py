"""``%%ranks N``: run a cell's body on N ranks.

    %load_ext ringzero_course.lab.magic

    %%ranks 4 --timeout 30
    x = torch.ones(2) * dist.get_rank() * scale      # the notebook's variables and functions are there
    dist.all_reduce(x)
    x                                                # shown for each rank

The body runs as if it were a function: what it assigns stays on the ranks. Output comes back grouped by rank.
"""

import argparse
import ast
import builtins
import linecache
import shlex
import sys
from dataclasses import replace

from ringzero.ranks import RankError, launch
from ringzero.record.sources import BODY_OF


def load_ipython_extension(shell):
    shell.register_magic_function(lambda line, cell: ranks(line, cell, shell), "cell", "ranks")


def ranks(line, cell, shell):
    """The magic. Errors of the cell are shown as one message, in the cell's own lines."""
    options = _options(line)
    if options is None:
        return None
    try:
        tree = ast.parse(cell)
    except SyntaxError as error:
        raise SyntaxError(f"%%ranks, line {error.lineno + 1} of the cell: {error.msg}") from None
    namespace = {name: shell.user_ns[name] for name in _names(tree) if name in shell.user_ns}
    filename = _remember("\n" + cell)  # the line of %%ranks itself keeps the numbering
    try:
        result = launch(
            _run_body,
            "\n" + cell,
            filename,
            namespace,
            world_size=options.world_size,
            device=options.device,
            timeout=options.timeout,
            trace=options.trace,
        )
    except RankError as error:
        print(error)
        return None
    return replace(result, returns=[None if text is None else _Shown(text) for text in result.returns])


def _run_body(source, filename, namespace):
    """On a rank: the body, statement by statement; the text of its last expression, or None."""
    tree = ast.parse(source, filename)
    last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    scope = {**namespace, "__name__": "__main__", "__builtins__": builtins}
    exec(compile(tree, filename, "exec"), scope)
    value = None if last is None else eval(compile(ast.Expression(last), filename, "eval"), scope)
    return None if value is None else repr(value)


class _Shown(str):
    """Text that shows as it stands."""

    def __repr__(self):
        return str(self)


def _names(tree):
    """The names a body reads, in order."""
    return dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _remember(source):
    """Keep ``source`` where tracebacks look, under a name that tells which cell it is."""
    frame = sys._getframe()
    while frame is not None and not _is_cell(frame.f_code.co_filename):
        frame = frame.f_back
    name = BODY_OF + (frame.f_code.co_filename if frame is not None else "<ipython cell>")
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return name


def _is_cell(filename):
    """Whether IPython compiled this from a cell: the kernel's own code lies in site-packages."""
    return filename.startswith("<ipython") or ("ipykernel_" in filename and "site-packages" not in filename)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"%%ranks: {message}; write for example: %%ranks 4 --timeout 30")


def _options(line):
    parser = _Parser(prog="%%ranks", add_help=True)
    parser.add_argument("world_size", type=int, nargs="?", default=2, help="how many ranks")
    parser.add_argument("--device", default="auto", help='"auto", "cpu", "cuda" or "strict"')
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds")
    parser.add_argument("--trace", action="store_true", help="keep what the ranks did in the result's trace")
    try:
        return parser.parse_args(shlex.split(line))
    except SystemExit:  # --help
        return None
