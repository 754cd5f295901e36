"""Before and after: what each rank held when a collective began and what it holds now."""

from collections.abc import Sequence
from html import escape

from ringzero.drawing.figure import Figure, frame


def before_after(before: Sequence, after: Sequence, caption: str | None = None) -> Figure:
    """A table with one row a rank. ``before[r]`` and ``after[r]`` are numbers, lists, lists of lists, tensors or None.

    What changed is set in bold.
    """
    rows, lines = [], []
    for rank, (old, new) in enumerate(zip(before, after, strict=True)):
        old, new = _text(old), _text(new)
        mark = "<strong>{}</strong>" if new != old else "{}"
        old_cell, new_cell = _cell(old), mark.format(_cell(new))
        rows.append(f'<tr><th scope="row">{rank}</th><td>{old_cell}</td><td>{new_cell}</td></tr>')
        lines.append(f"rank {rank}: {' '.join(old) or 'nothing'} becomes {' '.join(new) or 'nothing'}")
    head = "".join(f'<th scope="col">{title}</th>' for title in ("rank", "before", "after"))
    html = f'<table class="rz-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return frame(html, "; ".join(lines), caption)


def _cell(lines):
    return "<br>".join(f"<code>{escape(line)}</code>" for line in lines) or "nothing"


def _text(value):
    """One line for a vector, a line each for a list of vectors, none for None."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if value is None:
        return []
    if isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple)) or hasattr(v, "tolist") for v in value):
        return [line for v in value for line in _text(v)]
    return [" ".join(map(_number, value)) if isinstance(value, (list, tuple)) else _number(value)]


def _number(value):
    if isinstance(value, complex):
        return f"{value.real:g}{value.imag:+g}i"
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
